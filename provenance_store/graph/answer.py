"""The answer to a lineage question, as DESIGN.md's contract has it."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from provenance_store.model.account import Verdict

Direction: TypeAlias = Literal["backward", "forward"]


class AnsweredRecord(msgspec.Struct, frozen=True):
    """A record that was reached, with the fewest steps from any start. Ids outside the lake have no dataset."""

    id: str
    dataset: str | None
    depth: int


class AnsweredEdge(msgspec.Struct, frozen=True, order=True):
    """One dependency that was crossed, and the run that made it."""

    output: str
    input: str
    run: str


class CrossedRun(msgspec.Struct, frozen=True, order=True):
    """A run that was crossed on the way."""

    run: str
    dic: str
    verdict: Verdict


class Feed(msgspec.Struct, frozen=True, order=True):
    """One dataset feeds another through a DIC, in so many runs and by so many derivations."""

    source: str
    target: str
    dic: str
    runs: int
    edges: int


class DatasetCount(msgspec.Struct, frozen=True):
    """How many records of a dataset an answer holds; of none, where ids are outside the lake."""

    dataset: str | None
    records: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """An answer by its numbers: what can be told of it before its details."""

    start: list[str]
    direction: Direction
    verdict: Verdict
    records: int
    edges: int
    datasets: list[DatasetCount]
    runs: list[CrossedRun]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Everything reachable from the starts, ordered so that equal questions give equal bytes.

    `records` holds what was reached and never a start, not even where a cycle leads back to one. A filter (`to`,
    sources or sinks only) leaves the edges that lead to the records it keeps. `runs` are all that the search crossed,
    filtered or not, because a gap in any of them may have hidden a record; `verdict` is the worst of theirs, and
    `complete` where none was crossed.
    """

    start: list[str]
    direction: Direction
    verdict: Verdict
    records: list[AnsweredRecord]
    edges: list[AnsweredEdge]
    runs: list[CrossedRun]

    def summary(self) -> Summary:
        """The same by its numbers."""
        return Summary(
            start=self.start,
            direction=self.direction,
            verdict=self.verdict,
            records=len(self.records),
            edges=len(self.edges),
            datasets=count_datasets(Counter(record.dataset for record in self.records)),
            runs=self.runs,
        )

    def to_json(self) -> bytes:
        """The contract's JSON, on one line."""
        return msgspec.json.encode(self)


def count_datasets(counts: Mapping[str | None, int]) -> list[DatasetCount]:
    """The largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return [DatasetCount(dataset, records) for dataset, records in ordered]
