"""What the examples share: time, windows as the papers have them, and the order in which events may come."""

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol, TypeAlias

import msgspec

from provenance_store.streams.query import StreamQuery
from provenance_store.streams.windows import Window

SourceEvent: TypeAlias = dict[str, Any]

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# A midnight, so that windows of any size begin with the events.
BEGIN = 18_500 * DAY


class Generate(Protocol):
    """A seeded generator: the first `count` source events in the order of time, of about `keys` different keys."""

    def __call__(self, count: int, seed: int, keys: int = ...) -> Iterator[SourceEvent]:
        """The events."""


def last(size: int) -> Window:
    """The last `size` milliseconds before a moment, without the moment itself, as both papers have windows."""
    return Window("time", size, "left")


def spread(query: StreamQuery, by: tuple[str, ...]) -> StreamQuery:
    """The query with each key of these fields on its own, where queries know that."""
    return msgspec.structs.replace(query, by=by) if "by" in query.__struct_fields__ else query


def together(name: str, *queries: StreamQuery) -> StreamQuery:
    """Several queries over the same sources as one with all their sinks; what they have in common is done once."""
    operators = {one.name: one for query in queries for one in query.operators}
    sinks = tuple(sink for query in queries for sink in query.sinks)
    return StreamQuery(name=name, sources=queries[0].sources, operators=tuple(operators.values()), sinks=sinks)


def mix(events: Iterator[SourceEvent], lateness: int, seed: int) -> Iterator[SourceEvent]:
    """Events in an order in which they may come: none comes behind one that is more than `lateness` later."""
    chance = chance_of(seed)
    on_the_way: list[tuple[int, int, SourceEvent]] = []
    for number, event in enumerate(events):
        while on_the_way and on_the_way[0][0] <= event["time"]:
            yield heappop(on_the_way)[2]
        heappush(on_the_way, (event["time"] + chance.randint(0, lateness), number, event))
    while on_the_way:
        yield heappop(on_the_way)[2]


def chance_of(seed: int) -> Random:
    """Chance that the seed alone decides."""
    return Random(seed)  # noqa: S311 - data to try queries on, and no secret
