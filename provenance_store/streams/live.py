"""Live forward provenance (paper 004): from results, their sources and watermarks, a graph that grows and closes.

Each result and each source that contributed to one is told once, as a vertex; each pair of them once, as an edge after
both; and each vertex once as expired, after which no edge leads to it any more. A result is expired once its edges are
told. A source is expired when it can lead to nothing any more: where its time lies more than U before the watermark
(the paper's ANK-1), or, sooner and without any U, where nothing that the engine still holds was made from it.

What is remembered is what was told and is not expired, so state and time follow what flows, and never all that flowed.
One `Live` serves all sinks of a query, which share their sources.
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from provenance_store.errors import JobError

# The watermark of a run that has ended, when all that is left expires.
END = 1 << 60
_BEGIN = -(1 << 62)


class Result(NamedTuple):
    """A result: its id, its time, and the ids and times of the sources' records that it was made from."""

    id: str
    time: int
    sources: Sequence[tuple[str, int]]


class SourceVertex(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="source"):
    """A source's record that contributed to a result; `at` is the watermark when it is told, as everywhere here."""

    at: int
    id: str
    time: int


class SinkVertex(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="sink"):
    """A result."""

    at: int
    id: str
    time: int


class Edge(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="edge"):
    """A result, and a source's record that it was made from."""

    at: int
    output: str
    input: str


class Expired(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="expired"):
    """No further edge will lead to this vertex."""

    at: int
    id: str


Element: TypeAlias = SourceVertex | SinkVertex | Edge | Expired


class _State(msgspec.Struct, array_like=True):
    """`told` are the (time, id) of sources that may still lead to something, as a heap; `passed` have expired."""

    told: list[tuple[int, str]]
    watermark: int = _BEGIN
    passed: int = _BEGIN


class Live:
    """What is told of a graph, as results are made and the watermark goes on.

    `reach` is U in milliseconds, or None where results reach back without bound. `state` is what another has put away.
    """

    def __init__(self, reach: int | None, state: bytes | None = None) -> None:
        self._reach = reach
        self._state = msgspec.msgpack.decode(state, type=_State) if state else _State([])
        self._known = {source for _, source in self._state.told}

    def __len__(self) -> int:
        """How many sources are told and not expired."""
        return len(self._known)

    def put_away(self) -> bytes:
        """The state, from which another goes on."""
        return msgspec.msgpack.encode(self._state)

    def take(self, watermark: int, results: Iterable[Result]) -> list[Element]:
        """What is told of results, in the order of their making; afterwards call `advance`."""
        self._go_on(watermark)
        known, heap, passed = self._known, self._state.told, self._state.passed
        told: list[Element] = []
        for result, time, sources in results:
            edges: dict[str, Element] = {}
            for source, moment in sources:
                if source not in known:
                    if moment < passed:
                        raise self._expired(source, result)
                    known.add(source)
                    heapq.heappush(heap, (moment, source))
                    told.append(SourceVertex(watermark, source, moment))
                edges[source] = Edge(watermark, result, source)  # once, by however many ways it contributed
            told.append(SinkVertex(watermark, result, time))
            told += edges.values()
            told.append(Expired(watermark, result))
        return told

    def advance(self, watermark: int, alive: Collection[str] | None = None) -> list[Element]:
        """The sources that have expired by this watermark, by time and id.

        `alive`, where it is known, holds all sources that the engine's state was made from: no other can lead to
        anything. Where there is no bound on the reach only it tells, until the run ends.
        """
        self._go_on(watermark)
        state = self._state
        gone: list[tuple[int, str]] = []
        if alive is not None:
            kept: list[tuple[int, str]] = []
            for one in state.told:
                (gone if one[1] not in alive or self._is_passed(one[0]) else kept).append(one)
            gone.sort()
            heapq.heapify(kept)
            state.told = kept
        else:
            while state.told and self._is_passed(state.told[0][0]):
                gone.append(heapq.heappop(state.told))
        if self._reach is not None:
            state.passed = watermark - self._reach
        self._known.difference_update(source for _, source in gone)
        return [Expired(watermark, source) for _, source in gone]

    def _is_passed(self, time: int) -> bool:
        watermark = self._state.watermark
        return watermark >= END or (self._reach is not None and time < watermark - self._reach)

    def _go_on(self, watermark: int) -> None:
        if watermark < self._state.watermark:
            raise JobError(
                f"The watermark went back from {self._state.watermark} to {watermark}: what was told as expired may "
                "not have been. Begin the run anew, under another id."
            )
        self._state.watermark = watermark

    def _expired(self, source: str, result: str) -> JobError:
        return JobError(
            f"The result {result} was made from {source}, which had expired: it lies more than {self._reach} ms before "
            "the watermark. Results reach back further than the query says, so what was told is not to be trusted."
        )
