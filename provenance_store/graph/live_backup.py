"""What a backup holds of stream queries that are running: as much as it met, and that it is not all.

Such a run goes on while the backup is taken, and its followers are somewhere else when it is restored. So a restored
one is followed no longer, its verdict is partial and its counts are of what is there, until its finished graph comes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from provenance_store.graph.liveness import LiveRun
from provenance_store.graph.reduced import dataset_name

LABEL = "Live"
_ONLY_LIVE = frozenset(("live", "watermark", "reach", "reads", "told_at"))


class LiveSoFar:
    """Counts the edges of runs that go on, as they are written, and has their nodes and feeds say so many."""

    def __init__(self, runs: Iterable[LiveRun]) -> None:
        self._runs = {run.run for run in runs}
        self._counted: Counter[tuple[str, str | None, str | None]] = Counter()

    def count(self, edges: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
        """The same edges."""
        for edge in edges:
            if edge["run"] in self._runs:
                self._counted[edge["run"], dataset_name(edge["input"]), dataset_name(edge["output"])] += 1
            yield edge

    def node(self, labels: list[str], known: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        """A node as it is kept."""
        if "Run" not in labels or known["id"] not in self._runs:
            return labels, known
        edges = sum(count for (run, _, _), count in self._counted.items() if run == known["id"])
        lasting = {name: value for name, value in known.items() if name not in _ONLY_LIVE}
        return [label for label in labels if label != LABEL], lasting | {"verdict": "partial", "edges": edges}

    def feed(self, source: str, target: str, known: dict[str, Any]) -> dict[str, Any]:
        """What is kept of how one dataset feeds another."""
        return known | ({"edges": self._counted[known["run"], source, target]} if known["run"] in self._runs else {})
