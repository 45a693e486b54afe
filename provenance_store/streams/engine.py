"""The engine: a query executed as events come, in any order, with a state that can be put away and taken up again.

Events wait until the watermark has passed them: then no earlier one can come, and they go through the operators in the
order of time. So the same events give the same streams however they were mixed and cut into batches; one that comes
after the watermark has passed it takes no part.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.making import maker
from provenance_store.streams.operators import Join, Operator, Union
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.reference import Lag, Streams
from provenance_store.streams.windows import Window

BEGIN = -(1 << 62)


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way in. `origin` is a file, or the like, and a place in it; of one time, the lower goes first."""

    source: str
    time: int
    origin: tuple[str, int]
    delay: int
    content: Any


# An event of a source that takes part, and where it came from.
Entered: TypeAlias = tuple[Event, tuple[str, int]]


class _Kept(msgspec.Struct, array_like=True):
    """What an operator remembers: events that windows may still see, by input, and how far it has come."""

    waiting: list[list[Event]]
    seen: list[list[Event]]
    come: int = 0
    made: int = 0
    last: int = BEGIN


class _State(msgspec.Struct, array_like=True):
    waiting: list[Arrival]
    counts: dict[str, int]
    kept: dict[str, _Kept]
    until: int = BEGIN
    late: int = 0


class Engine:
    """A query at work. With `parents`, every event that it makes says which events it was made from directly.

    How long an operator took whose delay differs is measured, or told by `lag`.
    """

    def __init__(
        self,
        query: StreamQuery,
        state: bytes | None = None,
        *,
        lag: Lag | None = None,
        parents: bool = False,
    ) -> None:
        self._places = {source.name: at for at, source in enumerate(query.sources)}
        self._steps = [_Step(one, lag, parents=parents) for one in query.ordered()]
        self._readers: dict[str, list[tuple[str, int]]] = {}
        for one in query.operators:
            for at, name in enumerate(one.inputs):
                self._readers.setdefault(name, []).append((one.name, at))
        self._state = msgspec.msgpack.decode(state, type=_State) if state else self._begin(query)

    def _begin(self, query: StreamQuery) -> _State:
        kept = {one.name: _Kept([[] for _ in one.inputs], [[] for _ in one.inputs]) for one in query.operators}
        return _State([], {source.name: 0 for source in query.sources}, kept)

    @property
    def late(self) -> int:
        """How many events came too late to take part."""
        return self._state.late

    @property
    def until(self) -> int:
        """The time before which nothing can come any more."""
        return self._state.until

    @property
    def next_time(self) -> int | None:
        """The time of the first event that waits."""
        return min((arrival.time for arrival in self._state.waiting), default=None)

    def put_away(self) -> bytes:
        """The state, from which another engine goes on."""
        return msgspec.msgpack.encode(self._state)

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """Take in events, in any order."""
        for arrival in arrivals:
            if arrival.time < self._state.until:
                self._state.late += 1
            else:
                self._state.waiting.append(arrival)

    def advance(self, until: int) -> tuple[list[Entered], Streams]:
        """Go on to where nothing before `until` can come: the events of sources that took part, and what was made."""
        state = self._state
        if until <= state.until:
            return [], {}
        state.until = until
        entered: list[Entered] = []
        ready = sorted(
            (one for one in state.waiting if one.time < until),
            key=lambda one: (one.time, self._places[one.source], one.origin),
        )
        state.waiting = [one for one in state.waiting if one.time >= until]
        for arrival in ready:
            number = state.counts[arrival.source] = state.counts[arrival.source] + 1
            event = Event(EventKey(arrival.time, number, arrival.source, arrival.delay), arrival.content)
            entered.append((event, arrival.origin))
            self._hand_on([event])
        made: Streams = {}
        for step in self._steps:
            made[step.name] = step.run(state.kept[step.name], until)
            self._hand_on(made[step.name])
        return entered, made

    def _hand_on(self, events: Sequence[Event]) -> None:
        if events:
            for name, at in self._readers.get(events[0].key.stream, ()):
                self._state.kept[name].waiting[at].extend(events)


class _Step:
    """One operator."""

    def __init__(self, one: Operator, lag: Lag | None, *, parents: bool) -> None:
        self.name = one.name
        self._one = one
        self._rule = one.rule
        self._lag = lag
        self._parents = parents
        self._make = maker(one)
        self._arrive = self._choose()

    def _choose(self) -> Any:
        if isinstance(self._one, Union):
            return lambda kept, side, event: self._fire(kept, event.key, [[event]])
        if isinstance(self._one, Join):
            return self._pair
        return self._count if self._rule.trigger.kind == "events" else None

    def run(self, kept: _Kept, until: int) -> list[Event]:
        """What it makes up to a time."""
        ready = [[event for event in events if event.key.timestamp < until] for events in kept.waiting]
        kept.waiting = [events[len(come) :] for events, come in zip(kept.waiting, ready, strict=True)]
        if self._arrive is None:
            for seen, come in zip(kept.seen, ready, strict=True):
                seen.extend(come)
            return list(self._fire_at_times(kept, until))
        merged = [(side, event) for side, events in enumerate(ready) for event in events]
        if len(ready) > 1:
            merged.sort(key=lambda one: (one[1].key.timestamp, one[0]))
        return [made for side, event in merged for made in self._arrive(kept, side, event)]

    def _count(self, kept: _Kept, _: int, event: Event) -> Iterator[Event]:
        """The trigger counts events."""
        kept.come += 1
        window, (seen,) = self._rule.windows[0], kept.seen
        seen.append(event)
        if self._rule.trigger.fires(kept.come):
            yield from self._fire(kept, event.key, [_look(window, event.key.timestamp, seen, counted=True)])
        _trim(window, event.key.timestamp, seen)

    def _pair(self, kept: _Kept, side: int, event: Event) -> Iterator[Event]:
        moment = event.key.timestamp
        for window, seen in zip(self._rule.windows, kept.seen, strict=True):
            _trim(window, moment, seen)
        other = kept.seen[1 - side]
        yield from self._fire(kept, event.key, [[event], other] if side == 0 else [other, [event]])
        kept.seen[side].append(event)
        _trim(self._rule.windows[side], moment, kept.seen[side])

    def _fire_at_times(self, kept: _Kept, until: int) -> Iterator[Event]:
        while (moment := self._next_moment(kept)) is not None and moment < until:
            windows = [_look(window, moment, seen) for window, seen in zip(self._rule.windows, kept.seen, strict=True)]
            yield from self._fire(kept, EventKey(moment, 0, ""), windows)
            kept.come = moment + 1
        kept.come = max(kept.come, until)
        for window, seen in zip(self._rule.windows, kept.seen, strict=True):
            _trim(window, until, seen)

    def _next_moment(self, kept: _Kept) -> int | None:
        """The next time to fire at, over any of the inputs."""
        times = []
        for window, seen in zip(self._rule.windows, kept.seen, strict=True):
            for event in seen:
                due = event.key.timestamp - window.last
                moment = self._rule.trigger.next_from(due if window.kind == "length" else max(due, kept.come))
                if kept.come <= moment and (window.kind == "length" or moment <= event.key.timestamp - window.first):
                    times.append(moment)
                    break
        return min(times, default=None)

    def _fire(self, kept: _Kept, trigger: EventKey, windows: list[list[Event]]) -> Iterator[Event]:
        if not all(windows):
            return
        began = time.perf_counter_ns()
        for made in self._make([[event.content for event in window] for window in windows]):
            kept.made += 1
            took = self._took(kept.made, began) if self._one.delay is None else self._one.delay
            kept.last = moment = max(trigger.timestamp + took, kept.last)
            number = trigger.sequence if self._rule.keeps_number else kept.made
            parents = tuple(windows[at][place].key for at, place in made.places) if self._parents else ()
            yield Event(EventKey(moment, number, self.name, moment - trigger.timestamp), made.content, parents)

    def _took(self, number: int, began: int) -> int:
        return (time.perf_counter_ns() - began) // 1_000_000 if self._lag is None else self._lag(self.name, number)


def _look(window: Window, time: int, seen: list[Event], *, counted: bool = False) -> list[Event]:
    if window.kind == "length" and counted:
        return seen[-window.size :]
    come = [event for event in seen if event.key.timestamp <= time + window.last]
    if window.kind == "length":
        return come[-window.size :]
    return [event for event in come if event.key.timestamp >= time + window.first]


def _trim(window: Window, time: int, seen: list[Event]) -> None:
    """Forget what no window from this time on can see."""
    if window.kind == "length":
        del seen[: -window.size]
    else:
        passed = next((at for at, event in enumerate(seen) if event.key.timestamp >= time + window.first), len(seen))
        del seen[:passed]
