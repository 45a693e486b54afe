"""The answer to a lineage question, as DESIGN.md's contract has it."""

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

    def to_json(self) -> bytes:
        """The contract's JSON, on one line."""
        return msgspec.json.encode(self)
