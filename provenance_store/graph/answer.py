"""The answer to a lineage question, as DESIGN.md's contract has it."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from provenance_store.model.account import Verdict

Direction: TypeAlias = Literal["backward", "forward"]
Known: TypeAlias = Literal["captured", "inferred", "replayed", "declared"]


class AnsweredRecord(msgspec.Struct, frozen=True):
    """A record that was reached, with the fewest steps from any start. Ids outside the lake have no dataset."""

    id: str
    dataset: str | None
    depth: int


class AnsweredEdge(msgspec.Struct, frozen=True, order=True):
    """One dependency that was crossed, the run that made it, and how that is known.

    `captured` while the job ran, `inferred` from a stream query's description and its events' keys, `replayed` with the
    contents of its first inputs, or only `declared` of whole versions. One that is not `exact` may be no dependency,
    and stands there because none is left out.
    """

    output: str
    input: str
    run: str
    known: Known = "captured"
    exact: bool = True

    @property
    def label(self) -> str:
        """The run as people read it, with how the edge is known where it was not captured."""
        if self.known == "captured":
            return self.run
        return f"{self.run} ({self.known}{'' if self.exact else ', not exact'})"


class CrossedRun(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """A run that was crossed on the way, or would have been: what a `pruned` one made is missing, so it is partial.

    A `live` one goes on, and what it makes is told as it goes.
    """

    run: str
    dic: str
    verdict: Verdict
    pruned: bool = False
    live: bool = False


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


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer by its numbers: what can be told of it before its details."""

    start: list[str]
    direction: Direction
    verdict: Verdict
    records: int
    edges: int
    datasets: list[DatasetCount]
    runs: list[CrossedRun]
    accuracy: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything reachable from the starts, ordered so that equal questions give equal bytes.

    `records` holds what was reached and never a start, not even where a cycle leads back to one. A filter (`to`,
    sources or sinks only) leaves the edges that lead to the records it keeps. `runs` are all that the search crossed,
    filtered or not, because a gap in any of them may have hidden a record; `verdict` is the worst of theirs, and
    `complete` where none was crossed. `accuracy` is the share of the records that are reached along exact edges alone;
    of the others some may not belong here, and where it is not told, all do.
    """

    start: list[str]
    direction: Direction
    verdict: Verdict
    records: list[AnsweredRecord]
    edges: list[AnsweredEdge]
    runs: list[CrossedRun]
    accuracy: float | None = None

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
            accuracy=self.accuracy,
        )

    def to_json(self) -> bytes:
        """The contract's JSON, on one line."""
        return msgspec.json.encode(self)


def count_datasets(counts: Mapping[str | None, int]) -> list[DatasetCount]:
    """The largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return [DatasetCount(dataset, records) for dataset, records in ordered]
