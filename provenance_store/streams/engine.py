"""The engine: a query executed as events come, in any order, with a state that can be put away and taken up again.

Events wait until the watermark has passed them: then no earlier one can come, and they go through the operators in the
order of time. So the same events give the same streams however they were mixed and cut into batches; one that comes
after the watermark has passed it takes no part.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from provenance_store.errors import JobError
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.making import Made, maker, remember
from provenance_store.streams.operators import Join, Operator, Process, Union
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.reference import Lag, Streams
from provenance_store.streams.trails import Leaf, Run, Trails, roots_of, runs_of
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
    memories: dict[str, Any] = {}


class _State(msgspec.Struct, array_like=True):
    waiting: list[Arrival]
    counts: dict[str, int]
    kept: dict[str, _Kept]
    until: int = BEGIN
    late: int = 0
    trails: Trails | None = None


class Firing(NamedTuple):
    """An operator at work once: what it looked at, what it made, and what it remembered before and after."""

    operator: str
    trigger: EventKey
    windows: list[list[Event]]
    made: list[Event]
    before: bytes
    after: bytes


Watch: TypeAlias = Callable[[Firing], None]


class Plan:
    """A query made ready to be executed, by any number of engines.

    With `parents`, every event that is made says which events it was made from directly. With `trails`, engines know at
    any time which events of sources an event was made from. How long an operator took whose delay differs is measured,
    or told by `lag`. Every firing is shown to `watch`.
    """

    def __init__(
        self,
        query: StreamQuery,
        *,
        lag: Lag | None = None,
        parents: bool = False,
        trails: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self.query = query
        self.trails = trails
        self.roots = roots_of(query)
        self.places = {source.name: at for at, source in enumerate(query.sources)}
        self.steps = [_Step(one, self.roots, lag, parents=parents, watch=watch) for one in query.ordered()]
        self.readers: dict[str, list[tuple[str, int]]] = {}
        for one in query.operators:
            for at, name in enumerate(one.inputs):
                self.readers.setdefault(name, []).append((one.name, at))

    def begin(self) -> _State:
        """The state of an engine to which nothing has come."""
        query = self.query
        kept = {one.name: _Kept([[] for _ in one.inputs], [[] for _ in one.inputs]) for one in query.operators}
        trails = Trails(links={one.name: {} for one in query.operators}) if self.trails else None
        return _State([], {source.name: 0 for source in query.sources}, kept, trails=trails)


class Engine:
    """A query at work: `Plan` says what else it can tell."""

    def __init__(
        self,
        query: StreamQuery | Plan,
        state: bytes | None = None,
        lag: Lag | None = None,
        *,
        parents: bool = False,
        trails: bool = False,
    ) -> None:
        self._plan = query if isinstance(query, Plan) else Plan(query, lag=lag, parents=parents, trails=trails)
        self._state = msgspec.msgpack.decode(state, type=_State) if state else self._plan.begin()

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

    @property
    def due(self) -> int | None:
        """The first time at which anything can happen by itself; None where something has to come first."""
        times = [step.due(self._state.kept[step.name], forgets=self._plan.trails) for step in self._plan.steps]
        return min((time for time in [self.next_time, *times] if time is not None), default=None)

    def first_before(self, until: int) -> tuple[int, int, tuple[str, int]] | None:
        """Of the events that wait and are before a time, the first in the order of taking part."""
        return min(map(self._order, self._ready(until)), default=None)

    @property
    def counts(self) -> dict[str, int]:
        """How many events of each source have taken part."""
        return self._state.counts

    def drop_waiting(self) -> None:
        """Forget events that have come and not taken part, for who gives them again."""
        self._state.waiting = []

    def put_away(self) -> bytes:
        """The state, from which another engine goes on."""
        return msgspec.msgpack.encode(self._state)

    def enter(self, source: str, number: int, leaf: Leaf) -> None:
        """Tell where the record of an event that took part stands, so that what is made can be traced to it."""
        if self._state.trails is not None:
            self._state.trails.enter(source, number, leaf)

    def sources_of(self, key: EventKey) -> list[tuple[str, Leaf]]:
        """The events of sources that an event was made from, that one of what was made last."""
        found = self._trails.sources(self._plan.roots[key.stream], key.sequence)
        return [(source, self._trails.leaves[source][number]) for source, number in found]

    def forget(self) -> Iterator[tuple[str, Leaf]]:
        """Forget where events came from that can lead to nothing any more; those of sources that still can."""
        roots = self._plan.roots
        held = (
            event.key
            for kept in self._state.kept.values()
            for events in (*kept.waiting, *kept.seen)
            for event in events
        )
        self._trails.keep((roots[key.stream], key.sequence, key.sequence) for key in held)
        for source, leaves in self._trails.leaves.items():
            for leaf in leaves.values():
                yield source, leaf

    @property
    def _trails(self) -> Trails:
        if self._state.trails is None:
            raise JobError("This engine was begun without trails, and cannot tell where an event came from.")
        return self._state.trails

    def _ready(self, until: int) -> Iterator[Arrival]:
        return (one for one in self._state.waiting if one.time < until)

    def _order(self, one: Arrival) -> tuple[int, int, tuple[str, int]]:
        return one.time, self._plan.places[one.source], one.origin

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
        ready = sorted(self._ready(until), key=self._order)
        state.waiting = [one for one in state.waiting if one.time >= until]
        for arrival in ready:
            number = state.counts[arrival.source] = state.counts[arrival.source] + 1
            event = Event(EventKey(arrival.time, number, arrival.source, arrival.delay), arrival.content)
            entered.append((event, arrival.origin))
            self._hand_on([event])
        made: Streams = {}
        for step in self._plan.steps:
            made[step.name] = step.run(state.kept[step.name], until, state.trails)
            self._hand_on(made[step.name])
        return entered, made

    def _hand_on(self, events: Sequence[Event]) -> None:
        if events:
            for name, at in self._plan.readers.get(events[0].key.stream, ()):
                self._state.kept[name].waiting[at].extend(events)


class _Step:
    """One operator."""

    def __init__(
        self, one: Operator, roots: Mapping[str, str], lag: Lag | None, *, parents: bool, watch: Watch | None
    ) -> None:
        self.name = one.name
        self._one = one
        self._rule = one.rule
        self._roots = roots
        self._lag = lag
        self._parents = parents
        self._watch = watch
        self._trails: Trails | None = None
        self._remember = remember(one) if isinstance(one, Process) else None
        self._make = maker(one) if self._remember is None else None
        self._arrive = self._choose()

    def _choose(self) -> Any:
        if isinstance(self._one, Union | Process):
            return lambda kept, side, event: self._fire(kept, event.key, [[event]])
        if isinstance(self._one, Join):
            return self._pair
        return self._count if self._rule.trigger.kind == "events" else None

    def run(self, kept: _Kept, until: int, trails: Trails | None = None) -> list[Event]:
        """What it makes up to a time; where it came from is noted in the trails."""
        self._trails = trails
        ready = [[event for event in events if event.key.timestamp < until] for events in kept.waiting]
        kept.waiting = [events[len(come) :] for events, come in zip(kept.waiting, ready, strict=True)]
        if self._arrive is None:
            for seen, come in zip(kept.seen, ready, strict=True):
                seen.extend(come)
            return list(self._fire_at_times(kept, until))
        merged = [(side, event) for side, events in enumerate(ready) for event in events]
        if len(ready) > 1:
            merged.sort(key=lambda one: (one[1].key.timestamp, one[0]))
        made = [made for side, event in merged for made in self._arrive(kept, side, event)]
        for window, seen in zip(self._rule.windows, kept.seen, strict=False):
            if window.kind == "time":
                _trim(window, until, seen)
        return made

    def due(self, kept: _Kept, *, forgets: bool) -> int | None:
        """When it will do something by itself; or forget something, where that matters."""
        times = [events[0].key.timestamp for events in kept.waiting if events]
        if self._arrive is None and (moment := self._next_moment(kept)) is not None:
            times.append(moment)
        if forgets:
            pairs = zip(self._rule.windows, kept.seen, strict=False)
            times += [seen[0].key.timestamp - one.first for one, seen in pairs if one.kind == "time" and seen]
        return min(times, default=None)

    def _count(self, kept: _Kept, _: int, event: Event) -> Iterator[Event]:
        """The trigger counts events."""
        kept.come += 1
        window, (seen,) = self._rule.windows[0], kept.seen
        seen.append(event)
        if self._rule.trigger.fires(kept.come):
            yield from self._fire(kept, event.key, [_look(window, event.key.timestamp, seen, counted=True)])
        if window.kind == "length":
            del seen[: max(0, len(seen) + 1 - window.size)]  # the next window holds the next event, and as many less
        else:
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
        before = msgspec.json.encode(kept.memories) if self._watch else b""
        events = []
        for made in self._call(kept, windows):
            kept.made += 1
            took = self._took(kept.made, began) if self._one.delay is None else self._one.delay
            kept.last = moment = max(trigger.timestamp + took, kept.last)
            number = trigger.sequence if self._rule.keeps_number else kept.made
            if self._trails is not None and not self._rule.keeps_number:
                self._trails.note(self.name, number, self._runs(windows, made))
            parents = tuple(windows[at][place].key for at, place in made.places) if self._parents else ()
            event = Event(EventKey(moment, number, self.name, moment - trigger.timestamp), made.content, parents)
            if self._watch:
                events.append(event)
            yield event
        if self._watch:
            self._watch(Firing(self.name, trigger, windows, events, before, msgspec.json.encode(kept.memories)))

    def _call(self, kept: _Kept, windows: list[list[Event]]) -> Iterator[Made]:
        if self._remember is not None:
            return (Made(one, ((0, 0),)) for one in self._remember(kept.memories, windows[0][0].content))
        assert self._make is not None  # noqa: S101 - an operator makes in one way or the other
        return self._make([[event.content for event in window] for window in windows])

    def _runs(self, windows: list[list[Event]], made: Made) -> list[Run]:
        if len(made.places) == 1:  # by far the most
            ((at, place),) = made.places
            key = windows[at][place].key
            return [(self._roots[key.stream], key.sequence, key.sequence)]
        keys = (windows[at][place].key for at, place in made.places)
        return runs_of([(self._roots[key.stream], key.sequence) for key in keys])

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
