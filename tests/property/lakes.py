"""Small random lakes: merged into a real lake graph and pruned from it, and kept beside it as plain sets."""

import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import strategies as st

from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.retention import Pruned
from provenance_store.model.account import Verdict, worst_verdict
from tests.reduced import write_reduced

RECORDS = 9
DATASETS = 3


class Merge(NamedTuple):
    """One graph of a run: pairs of record numbers, output first."""

    run: int
    pairs: set[tuple[int, int]]
    verdict: Verdict


class Edge(NamedTuple):
    output: str
    input: str
    run: str


pairs = st.tuples(st.integers(0, RECORDS - 1), st.integers(0, RECORDS - 1)).filter(lambda pair: pair[0] != pair[1])
merges = st.builds(
    Merge,
    st.integers(0, 3),
    st.sets(pairs, min_size=1, max_size=8),
    st.sampled_from(["complete", "unknown", "partial"]),
)


class Lake:
    """What was merged and is not pruned, and what was pruned and is not merged again."""

    def __init__(self, graph: LakeGraph) -> None:
        self.word = f"p{uuid.uuid4().hex[:12]}"
        self.edges: set[Edge] = set()
        self.pruned: set[Edge] = set()
        self.verdicts: dict[str, Verdict] = {}
        # Records that a merge had to make when something was pruned already: it may have been something of theirs.
        self.made_late: set[str] = set()
        self._graph = graph
        self._generation = 0

    @property
    def records(self) -> list[str]:
        return sorted({end for edge in self.edges for end in edge[:2]})

    def merge(self, one: Merge) -> None:
        run = f"{self.word}-{one.run}"
        edges = {Edge(self.name(output), self.name(source), run) for output, source in one.pairs}
        made = {end for edge in edges for end in edge[:2]}.difference(self.records)
        with TemporaryDirectory() as folder:
            written = write_reduced(Path(folder) / run, run, edges, verdict=one.verdict, generation=self._generation)
            self._graph.merge(written)
        self._generation += 1
        self.made_late = (self.made_late | made if self.pruned else self.made_late - made) & {*self.records, *made}
        self.edges = {edge for edge in self.edges if edge.run != run} | edges
        self.pruned = {edge for edge in self.pruned if edge.run != run}
        self.verdicts[run] = one.verdict

    def prune(self, number: int) -> Pruned:
        """Prune the runs that wrote into the dataset of a record."""
        dataset = self.dataset(number)
        runs = {edge.run for edge in self.edges if edge.output.startswith(f"lake:{dataset}/")}
        pruned = self._graph.prune(dataset=dataset)
        self.pruned |= {edge for edge in self.edges if edge.run in runs}
        self.edges -= self.pruned
        return pruned

    def name(self, number: int) -> str:
        return f"lake:{self.dataset(number)}/1#{number}"

    def dataset(self, number: int) -> str:
        return f"{self.word}-{number % DATASETS}"

    def verdict(self, edges: set[Edge]) -> Verdict:
        return worst_verdict(self.verdicts[edge.run] for edge in edges)

    def depths(self, starts: list[str], *, backward: bool) -> dict[str, int]:
        found = dict.fromkeys(starts, 0)
        for step in range(len(self.edges) + 1):
            for output, source, _ in self.edges:
                near, far = (output, source) if backward else (source, output)
                if found.get(near) == step:
                    found.setdefault(far, step + 1)
        return found

    def reaches(self, output: str, source: str) -> bool:
        return source in self.depths([output], backward=True)
