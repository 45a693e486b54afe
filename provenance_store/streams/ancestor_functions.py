"""Stream ancestor functions, as Table II of paper 000 defines them, and the query that composes them (its Figure 4).

An ancestor function takes the keys of events that an operator made, and gives of each the span of the operator's input
that the key points at. They need nothing but a stream's keys, timestamps and numbers as they were asserted, and so
point at all events of a millisecond where one was meant. `inference` is narrower, and says what is certain.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from provenance_store.streams.event import EventKey
from provenance_store.streams.inference import Inference
from provenance_store.streams.keys import Keys, Numbers, spread_out
from provenance_store.streams.operators import Aggregate, Average, Filter, Join, Map
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.windows import Window

# First and last places in an input, of each key that was asked for.
Span: TypeAlias = tuple[Numbers, Numbers]
AncestorFunction: TypeAlias = Callable[[list[Keys], Keys], list[Span]]


def map_ancestors(inputs: list[Keys], made: Keys) -> list[Span]:
    """`timestamp = t - d`; of a filter too."""
    return [_between(inputs[0], made.triggered, made.triggered)]


def time_window_ancestors(size: int) -> AncestorFunction:
    """`t - d - w <= timestamp <= t - d`."""
    return lambda inputs, made: [_between(inputs[0], made.triggered - size, made.triggered)]


def length_window_ancestors(length: int) -> AncestorFunction:
    """`n - l + 1 <= seqNo <= n`."""

    def find(inputs: list[Keys], made: Keys) -> list[Span]:
        numbers = inputs[0].sequences
        first = np.searchsorted(numbers, made.sequences - length + 1)
        return [(first, np.searchsorted(numbers, made.sequences, side="right") - 1)]

    return find


def time_join_ancestors(sizes: tuple[int, int]) -> AncestorFunction:
    """The window over each of the two streams."""
    return lambda inputs, made: [
        _between(keys, made.triggered - size, made.triggered) for keys, size in zip(inputs, sizes, strict=True)
    ]


def length_join_ancestors(lengths: tuple[int, int]) -> AncestorFunction:
    """Of each of the two streams, the last so many with `timestamp <= t - d`."""

    def find(inputs: list[Keys], made: Keys) -> list[Span]:
        ends = [np.searchsorted(keys.timestamps, made.triggered, side="right") - 1 for keys in inputs]
        return [(np.maximum(end - length + 1, 0), end) for end, length in zip(ends, lengths, strict=True)]

    return find


@dataclass(frozen=True, slots=True)
class Traced:
    """A row of the trace table: a key, and the row of the event that it is an ancestor of."""

    index: int
    key: EventKey
    ancestor_of: int | None


class ProvenanceQuery:
    """Composes ancestor functions back from events, over the keys of all streams."""

    def __init__(self, query: StreamQuery, assertions: Mapping[str, Keys], until: int = 1 << 60) -> None:
        self._query = query
        self._assertions = assertions
        self._inference = Inference(query, assertions, until)

    def trace(self, keys: Iterable[EventKey], targets: Iterable[str] | None = None) -> list[Traced]:
        """The trace table from keys back to target streams, the sources unless told: what was found stands last."""
        stop = {source.name for source in self._query.sources} if targets is None else set(targets)
        passed: list[tuple[EventKey, int | None]] = []
        ended: list[tuple[EventKey, int | None]] = []
        level: list[tuple[EventKey, int | None]] = [(key, None) for key in keys]
        while level:
            ended += [row for row in level if row[0].stream in stop]
            going = [row for row in level if row[0].stream not in stop]
            streams = dict.fromkeys(key.stream for key, _ in going)
            numbers = {at: len(passed) + at for at in range(len(going))}
            passed += going
            level = list(
                chain.from_iterable(
                    self._step(name, [(key, numbers[at]) for at, (key, _) in enumerate(going) if key.stream == name])
                    for name in streams
                )
            )
        rows = passed + ended
        return [Traced(at, key, None if of is None else of + 1) for at, (key, of) in enumerate(rows, start=1)]

    def retrieve(self, keys: Iterable[EventKey], targets: Iterable[str] | None = None) -> set[EventKey]:
        """The keys in the target streams that keys go back to."""
        stop = {source.name for source in self._query.sources} if targets is None else set(targets)
        return {row.key for row in self.trace(keys, stop) if row.key.stream in stop}

    def _step(self, stream: str, rows: list[tuple[EventKey, int]]) -> list[tuple[EventKey, int | None]]:
        one = self._query.operator(stream)
        if one is None:
            return []  # another way back, which ends at a source without meeting a target
        inputs = [self._inference.keys(name) for name in one.inputs]
        made = Keys.of(stream, (key for key, _ in rows))
        found: list[tuple[EventKey, int | None]] = []
        for keys, (first, last) in zip(inputs, self._function(stream)(inputs, made), strict=True):
            of, places = spread_out(first, last)
            ancestors = keys.take(places).rows()
            found += [(key, rows[at][1]) for key, at in zip(ancestors, of.tolist(), strict=True)]
        return found

    def _function(self, stream: str) -> AncestorFunction:
        """The ancestor function of the operator that makes a stream; what Table II has none for is inferred."""
        return ancestor_function(self._query, stream) or self._inferred(stream)

    def _inferred(self, stream: str) -> AncestorFunction:
        step = self._inference.steps[stream]
        return lambda _, made: [
            (span.first, span.last) for span in step.spans(self._inference.keys(stream).places_of(made.sequences))
        ]


def ancestor_function(query: StreamQuery, stream: str) -> AncestorFunction | None:
    """What Table II has for the operator of a stream: its windows are closed at both ends and move by events."""
    match query.operator(stream):
        case Map() | Filter():
            return map_ancestors
        case Aggregate(window=window, trigger=trigger) | Average(window=window, trigger=trigger) if (
            trigger.kind == "events" and trigger.every == 1
        ):
            if window.kind == "length":
                return length_window_ancestors(window.size)
            return time_window_ancestors(window.size) if window.closed == "both" else None
        case Join(windows=(Window(kind="time", closed="both") as left, Window(kind="time", closed="both") as right)):
            return time_join_ancestors((left.size, right.size))
        case Join(windows=(Window(kind="length") as left, Window(kind="length") as right)):
            return length_join_ancestors((left.size, right.size))
    return None


def _between(keys: Keys, first: Numbers, last: Numbers) -> Span:
    times = keys.timestamps
    return np.searchsorted(times, first), np.searchsorted(times, last, side="right") - 1
