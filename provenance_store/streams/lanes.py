"""The lanes of a bucket: engines of one query, each with the events of one key, advanced together.

Lanes are numbered in the order in which their first events take part, so that the same events cut into the same batches
give the same numbers, and a batch that is done again makes the same again. What nothing has come to, and where nothing
is due, is not even decoded: a step costs what happens in it, and not how many lanes there have ever been.
"""

from collections.abc import Callable, Iterable
from zlib import crc32

import msgspec

from provenance_store.streams.engine import BEGIN, Arrival, Engine, Entered, Plan
from provenance_store.streams.event import END
from provenance_store.streams.live import Live
from provenance_store.streams.query import StreamQuery, lane_key
from provenance_store.streams.reference import Streams

_LANES_A_BUCKET = 1 << 32


class _Lane(msgspec.Struct, array_like=True):
    """A lane that rests. `due` is when something can happen in it by itself."""

    number: int | None = None
    state: bytes = b""
    live: bytes = b""
    due: int | None = None


class _State(msgspec.Struct, array_like=True):
    lanes: dict[bytes, _Lane] = {}
    until: int = BEGIN
    late: int = 0
    step: int = 0
    numbered: int = 0


class Lane:
    """A lane at work: its engine, and what is told of it live."""

    def __init__(self, rested: _Lane, engine: Engine, live: Live | None) -> None:
        self._rested = rested
        self.engine = engine
        self.live = live

    @property
    def number(self) -> int | None:
        """Its number, from when something takes part."""
        return self._rested.number

    @property
    def due(self) -> int | None:
        """When something can happen in it by itself."""
        times = [self.engine.due, self.live.due if self.live else None]
        return min((time for time in times if time is not None), default=None)

    def rest(self) -> None:
        """Put all of it away."""
        self._rested.state, self._rested.due = self.engine.put_away(), self.due
        self._rested.live = self.live.put_away() if self.live else b""


class Move(msgspec.Struct, frozen=True):
    """What happened in a lane in one step: the events that took part, with where they came from, and what was made."""

    lane: int
    engine: Engine
    entered: list[Entered]
    made: Streams


class Lanes:
    """The lanes of one bucket, with a state that can be put away and taken up again.

    `live` takes up what is told live of a lane, where anything is.
    """

    def __init__(
        self,
        plan: Plan,
        bucket: int = 0,
        state: bytes | None = None,
        live: Callable[[bytes | None], Live] | None = None,
    ) -> None:
        self._plan = plan
        self.bucket = bucket
        self._live = live
        self._state = msgspec.msgpack.decode(state, type=_State) if state else _State()
        self._open: dict[bytes, Lane] = {}

    @property
    def late(self) -> int:
        """How many events came too late to take part."""
        return self._state.late

    @property
    def until(self) -> int:
        """The time before which nothing can come any more."""
        return self._state.until

    @property
    def step(self) -> int:
        """How many steps were made."""
        return self._state.step

    @property
    def due(self) -> int | None:
        """The first time at which anything can happen by itself."""
        resting = (lane.due for key, lane in self._state.lanes.items() if key not in self._open)
        times = [*resting, *(lane.due for lane in self._open.values())]
        return min((time for time in times if time is not None), default=None)

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """Take in events, in any order."""
        by_lane: dict[bytes, list[Arrival]] = {}
        for arrival in arrivals:
            if arrival.time < self._state.until:
                self._state.late += 1
            else:
                by_lane.setdefault(lane_key(self._plan.query, arrival.content), []).append(arrival)
        for key, some in by_lane.items():
            self._take_up(key).engine.add(some)

    def advance(self, until: int) -> list[Move]:
        """Go on to where nothing before `until` can come: what happened, by lane."""
        state = self._state
        state.step += 1
        if until <= state.until:
            return []
        state.until = until
        for key, resting in state.lanes.items():
            if until == END or (resting.due is not None and resting.due < until):
                self._take_up(key)
        self._number(until)
        moves = []
        for lane in self._open.values():
            entered, made = lane.engine.advance(until)
            if entered or any(made.values()):
                assert lane.number is not None  # noqa: S101 - nothing is made before something took part
                moves.append(Move(lane.number, lane.engine, entered, made))
        return sorted(moves, key=lambda move: move.lane)

    def at_work(self) -> list[Lane]:
        """The lanes that this step has touched, in their order."""
        return sorted(
            (lane for lane in self._open.values() if lane.number is not None), key=lambda one: one.number or 0
        )

    def put_away(self) -> bytes:
        """The state, from which other lanes go on."""
        for lane in self._open.values():
            lane.rest()
        self._open.clear()
        return msgspec.msgpack.encode(self._state)

    def _take_up(self, key: bytes) -> Lane:
        if key not in self._open:
            rested = self._state.lanes.setdefault(key, _Lane())
            live = self._live(rested.live or None) if self._live else None
            self._open[key] = Lane(rested, Engine(self._plan, rested.state or None), live)
        return self._open[key]

    def _number(self, until: int) -> None:
        new = []
        for key, lane in self._open.items():
            if lane.number is None and (first := lane.engine.first_before(until)) is not None:
                new.append((first, key))
        for _, key in sorted(new):
            self._state.lanes[key].number = self.bucket * _LANES_A_BUCKET + self._state.numbered
            self._state.numbered += 1


def bucket_of(query: StreamQuery, content: object, buckets: int) -> int:
    """The bucket of an event: the same for all of a lane, on every machine."""
    return crc32(lane_key(query, content)) % buckets if query.by else 0


def late_of(state: bytes) -> int:
    """How many events came too late, by a state that was put away."""
    return msgspec.msgpack.decode(state, type=_State).late


def lane_state(state: bytes, number: int) -> bytes | None:
    """What was put away of one lane; None where it was not there yet."""
    lanes = msgspec.msgpack.decode(state, type=_State).lanes.values()
    return next((lane.state for lane in lanes if lane.number == number), None)


def bucket_of_lane(number: int) -> int:
    """The bucket that a lane is in."""
    return number // _LANES_A_BUCKET
