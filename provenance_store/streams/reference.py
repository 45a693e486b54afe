"""The reference: a query executed on whole streams, by the definitions, with the true ancestors of every event.

Slow and plain on purpose. Everything else in this package that executes or infers is tested against it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.making import Made, Make, Remember, maker, remember
from provenance_store.streams.operators import Join, Operator, Process, Product, Union
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.windows import Trigger, Window

Streams: TypeAlias = dict[str, list[Event]]
# How long an operator took to make its event of this number, where it does not always take as long.
Lag: TypeAlias = Callable[[str, int], int]


def number_arrivals(stream: str, arrivals: Sequence[tuple[int, int, Any]]) -> list[Event]:
    """The events of a source from (time, delay, content) in the order of arrival: ordered by time, counted from 1."""
    ordered = sorted(arrivals, key=lambda arrival: arrival[0])  # stable: of one time, as they came
    return [
        Event(EventKey(time, number, stream, delay), content)
        for number, (time, delay, content) in enumerate(ordered, start=1)
    ]


def execute(
    query: StreamQuery, sources: Mapping[str, Sequence[Event]], until: int, lag: Lag = lambda stream, number: 0
) -> Streams:
    """All streams of a query, as far as they are known once nothing before `until` can come any more."""
    streams: Streams = {source.name: list(sources.get(source.name, ())) for source in query.sources}
    for one in query.ordered():
        inputs = [[event for event in streams[name] if event.key.timestamp < until] for name in one.inputs]
        streams[one.name] = _Making(one, lag).run(inputs, until)
    return {name: [event for event in events if event.key.timestamp < until] for name, events in streams.items()}


def ancestors(query: StreamQuery, streams: Streams, key: EventKey) -> set[EventKey]:
    """The events of sources that an event was made from."""
    if query.operator(key.stream) is None:
        return {key}
    (event,) = [event for event in streams[key.stream] if event.key == key]
    return {source for parent in event.parents for source in ancestors(query, streams, parent)}


def moments(window: Window, trigger: Trigger, events: Sequence[Event]) -> set[int]:
    """The times at which a trigger fires over one input."""
    found: set[int] = set()
    for event in events:
        first = event.key.timestamp - window.last
        last = event.key.timestamp - window.first if window.kind == "time" else trigger.next_from(first)
        found.update(range(trigger.next_from(first), last + 1, trigger.every))
    return found


class _Making:
    """One operator at work."""

    def __init__(self, one: Operator, lag: Lag) -> None:
        self._one = one
        self._lag = lag
        self._memories: dict[str, Any] = {}
        self._make = self._recall(remember(one)) if isinstance(one, Process) else maker(one)
        self._made: list[Event] = []

    def _recall(self, call: Remember) -> Make:
        return lambda windows: (Made(content, ((0, 0),)) for content in call(self._memories, windows[0][0]))

    def run(self, inputs: list[list[Event]], until: int) -> list[Event]:
        one, rule = self._one, self._one.rule
        if isinstance(one, Union):
            for _, event in _in_order(inputs):
                self._fire(event.key, [[event]])
        elif isinstance(one, Join):
            self._join(one, inputs)
        elif rule.trigger.kind == "time" or isinstance(one, Product):
            times = set().union(*(moments(w, rule.trigger, e) for w, e in zip(rule.windows, inputs, strict=True)))
            for time in sorted(time for time in times if time < until):
                windows = [_look(w, time, e) for w, e in zip(rule.windows, inputs, strict=True)]
                self._fire(EventKey(time, 0, ""), windows)
        else:
            (events,), (window,) = inputs, rule.windows
            for place, event in enumerate(events, start=1):
                if rule.trigger.fires(place):
                    time, come = event.key.timestamp, events[:place]
                    seen = come[-window.size :] if window.kind == "length" else _look(window, time, come)
                    self._fire(event.key, [seen])
        return self._made

    def _join(self, one: Join, inputs: list[list[Event]]) -> None:
        come: list[list[Event]] = [[], []]
        for side, event in _in_order(inputs):
            seen = _look(one.windows[1 - side], event.key.timestamp, come[1 - side])
            self._fire(event.key, [[event], seen] if side == 0 else [seen, [event]])
            come[side].append(event)

    def _fire(self, trigger: EventKey, windows: list[list[Event]]) -> None:
        if not all(windows):
            return  # from an empty window nothing is made
        for made in self._make([[event.content for event in window] for window in windows]):
            self._emit(trigger, windows, made)

    def _emit(self, trigger: EventKey, windows: list[list[Event]], made: Made) -> None:
        one, count = self._one, len(self._made) + 1
        took = self._lag(one.name, count) if one.delay is None else one.delay
        # Events leave in the order in which they were triggered.
        before = self._made[-1].key.timestamp if self._made else trigger.timestamp
        time = max(trigger.timestamp + took, before)
        number = trigger.sequence if one.rule.keeps_number else count
        parents = tuple(windows[at][place].key for at, place in made.places)
        self._made.append(Event(EventKey(time, number, one.name, time - trigger.timestamp), made.content, parents))


def _look(window: Window, time: int, events: Sequence[Event]) -> list[Event]:
    """What of the events is in the window at a time."""
    come = [event for event in events if event.key.timestamp <= time + window.last]
    if window.kind == "length":
        return come[-window.size :]
    return [event for event in come if event.key.timestamp >= time + window.first]


def _in_order(inputs: list[list[Event]]) -> list[tuple[int, Event]]:
    """The events of all inputs as they come, with their input: by time, then by input."""
    come = [(side, event) for side, events in enumerate(inputs) for event in events]
    return sorted(come, key=lambda one: (one[1].key.timestamp, one[0]))  # stable: of one input, as they were made
