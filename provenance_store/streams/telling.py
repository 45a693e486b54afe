"""What a step of a bucket tells live: the results that landed, the sources they were made from, and what expired."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from provenance_store.errors import InputError
from provenance_store.model.ids import LAKE_PREFIX, version_prefix
from provenance_store.streams.landing import Landed, Landing
from provenance_store.streams.lanes import Lane, Lanes
from provenance_store.streams.live import Element, Live, Result
from provenance_store.streams.live_messages import LiveMessage, split_step
from provenance_store.streams.query import Source, StreamQuery
from provenance_store.streams.reach import reach

# When a source is said to be expired. `exact`: as soon as nothing that is at work was made from it. `reach`: when it
# lies further back than any result can reach, as paper 004 has it.
Expiry: TypeAlias = Literal["exact", "reach"]


class Telling:
    """Tells of steps; what is told of the same step again is the same."""

    def __init__(self, query: StreamQuery, run: str, expiry: Expiry = "exact") -> None:
        if measured := [one.name for one in query.operators if one.delay is None]:
            raise InputError(
                f"How long {measured[0]!r} takes is measured, so a step done again after a crash would tell other "
                "things: give it a delay to have live provenance."
            )
        self._query = query.name
        self._run = run
        self._reach = reach(query)
        self._expiry = "exact" if self._reach is None else expiry
        self._reads = [_read_by(source, run) for source in query.sources]

    @property
    def begin(self) -> Callable[[bytes | None], Live]:
        """Takes up what is told of a lane."""
        return lambda state: Live(self._reach, state)

    def messages(self, lanes: Lanes, landing: Landing, landed: Sequence[Landed]) -> Iterator[LiveMessage]:
        """What is told of a step, after it has landed and before it is put away."""
        results: dict[int, list[Result]] = {}
        for one in landed:
            results.setdefault(one.move.lane, []).append(self._result(landing, one))
        elements: list[Element] = []
        for lane in lanes.at_work():
            elements += self._tell(lanes.until, landing, lane, results.get(lane.number or 0, []))
        return split_step(
            elements,
            run=self._run,
            query=self._query,
            bucket=lanes.bucket,
            step=lanes.step,
            watermark=lanes.until,
            reach=self._reach,
            reads=self._reads,
        )

    def _tell(self, until: int, landing: Landing, lane: Lane, results: list[Result]) -> list[Element]:
        assert lane.live is not None  # noqa: S101 - lanes were taken up by `begin`
        told = lane.live.take(until, results)
        # Called in any case: it is what keeps the trails short.
        alive = {landing.source_id(source, leaf) for source, leaf in lane.engine.forget()}
        return told + lane.live.advance(until, alive if self._expiry == "exact" else None)

    def _result(self, landing: Landing, one: Landed) -> Result:
        sources = one.move.engine.sources_of(one.event.key)
        named = [(landing.source_id(source, leaf), leaf.time) for source, leaf in sources]
        return Result(one.id, one.event.key.timestamp, named)


def _read_by(source: Source, run: str) -> str:
    """What a source reads: a dataset with all its versions, or what the run itself lands or caches."""
    if source.topic is None:
        return f"{LAKE_PREFIX}{source.dataset}"
    return version_prefix(source.dataset, run if source.lands else source.topic)
