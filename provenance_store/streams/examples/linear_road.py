"""Linear Road, as paper 004 evaluates with it: cars report every 30 seconds where they are and how fast they go.

A car has broken down whose last four reports are of speed zero and of one position. An accident is where two cars or
more stand so at the same position in the same period; its alert depends on eight reports, and more cars on more.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count as numbers
from itertools import islice
from random import Random
from typing import TypeAlias

from provenance_store.streams.examples.common import BEGIN, SECOND, SourceEvent, chance_of, last, spread, together
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger

PERIOD = 30 * SECOND
REPORTS = 4
PLACE = ("highway", "direction", "position")
BY = ("car",)

_SOURCE = Source(name="reports", dataset="linear-road-reports", lateness=10 * SECOND)
_BROKEN_DOWN = (
    Filter(
        name="still",
        input="reports",
        function=Function("compare", {"field": "speed", "comparison": "==", "value": 0}),
    ),
    Aggregate(
        name="stops",
        input="still",
        function=Function("linear-road-stop"),
        window=last(REPORTS * PERIOD),
        trigger=Trigger("time", PERIOD),
        by=("car",),
    ),
    Filter(name="broken-down", input="stops", function=Function("linear-road-stopped", {"reports": REPORTS})),
)


def broken_down() -> StreamQuery:
    """Cars that have broken down. All is within one car."""
    sinks = (Sink(stream="broken-down", dataset="linear-road-broken-down"),)
    query = StreamQuery(name="linear-road-broken-down", sources=(_SOURCE,), operators=_BROKEN_DOWN, sinks=sinks)
    return spread(query, BY)


def accident(cars: int = 2) -> StreamQuery:
    """Places where so many cars have broken down at once. It needs two keys, the car and then the place: so no `by`."""
    places = Aggregate(
        name="places",
        input="broken-down",
        function=Function("linear-road-cars"),
        window=last(PERIOD),
        trigger=Trigger("time", PERIOD),
        by=PLACE,
    )
    accidents = Filter(name="accidents", input="places", function=Function("linear-road-collided", {"cars": cars}))
    return StreamQuery(
        name="linear-road-accident",
        sources=(_SOURCE,),
        operators=(*_BROKEN_DOWN, places, accidents),
        sinks=(Sink(stream="accidents", dataset="linear-road-accidents"),),
    )


def both() -> StreamQuery:
    """Both queries, as the paper runs them together."""
    return together("linear-road", broken_down(), accident())


@register("linear-road-stop")
def _stop(reports: Sequence[Content]) -> Content:
    """Where a car stands, by its reports of speed zero in a window."""
    places = {tuple(report[field] for field in PLACE) for report in reports}
    where = {field: reports[-1][field] for field in PLACE}
    return {**where, "places": len(places), "reports": len(reports), "since": reports[0]["time"]}


@register("linear-road-stopped")
def _stopped(stop: Content, reports: int) -> bool:
    return bool(stop["reports"] == reports and stop["places"] == 1)


@register("linear-road-cars")
def _cars(stops: Sequence[Content]) -> Content:
    return {"cars": sorted({stop["car"] for stop in stops}), "since": max(stop["since"] for stop in stops)}


@register("linear-road-collided")
def _collided(place: Content, cars: int) -> bool:
    return len(place["cars"]) >= cars


# A report without its car and its time: speed, highway, direction, position.
_Report: TypeAlias = tuple[int, int, int, int]

# What is planted, of one car or of two; the first cars begin with these, in this order.
PLANTED = {
    "broken down": 1,
    "three reports": 1,  # near misses of it
    "a step between": 1,
    "crawling once": 1,
    "accident": 2,
    "one after the other": 2,  # near misses of it
    "one behind the other": 2,
    "opposite directions": 2,
}


def _plan(kind: str, place: tuple[int, int, int], chance: Random) -> list[list[_Report]]:
    """What each car of a planted thing reports, from the approach on."""
    highway, direction, at = place
    long = chance.randint(REPORTS, REPORTS + 2)
    comes: _Report = (30, *place)
    crawls: _Report = (1, *place)
    stands: _Report = (0, *place)
    behind: _Report = (0, highway, direction, at + 1)
    opposite: _Report = (0, highway, 1 - direction, at)
    return {
        "broken down": [[comes, *[stands] * long]],
        "three reports": [[comes, *[stands] * (REPORTS - 1)]],
        "a step between": [[comes, stands, stands, behind, behind]],
        "crawling once": [[comes, stands, stands, crawls, stands, stands]],
        "accident": [[comes, *[stands] * long], [comes, *[stands] * long]],
        "one after the other": [[comes, *[stands] * REPORTS], [*[comes] * (REPORTS + 2), *[stands] * REPORTS]],
        "one behind the other": [[comes, *[stands] * long], [comes, *[behind] * long]],
        "opposite directions": [[comes, *[stands] * long], [comes, *[opposite] * long]],
    }[kind]


def generate(count: int, seed: int, keys: int = 20) -> Iterator[SourceEvent]:
    """Reports of `keys` cars."""
    return islice(_reports(chance_of(seed), keys), count)


def _reports(chance: Random, cars: int) -> Iterator[SourceEvent]:
    # Whole seconds, so that some cars report in the same millisecond.
    phases = [chance.randrange(30) * SECOND for _ in range(cars)]
    order = sorted(range(cars), key=lambda car: phases[car])
    now: list[_Report] = [(60, chance.randrange(4), chance.randrange(2), 0) for _ in range(cars)]
    planned: list[deque[_Report]] = [deque() for _ in range(cars)]
    for period in numbers():
        kinds = chance.choices(list(PLANTED), k=int(chance.random() < 0.3)) if period else list(PLANTED)  # noqa: PLR2004 - a share
        for kind in kinds:
            idle = [car for car in range(cars) if not planned[car]]
            if period:
                chance.shuffle(idle)
            if len(idle) >= PLANTED[kind]:
                place = (chance.randrange(4), chance.randrange(2), chance.randrange(500_000))
                for car, plan in zip(idle, _plan(kind, place, chance), strict=False):
                    planned[car].extend(plan)
        for car in order:
            now[car] = planned[car].popleft() if planned[car] else _drive(now[car], chance)
            speed, highway, direction, position = now[car]
            yield {
                "time": BEGIN + period * PERIOD + phases[car],
                "car": car,
                "speed": speed,
                "highway": highway,
                "direction": direction,
                "position": position,
            }


def _drive(now: _Report, chance: Random) -> _Report:
    _, highway, direction, position = now
    speed = chance.randint(30, 100)
    return speed, highway, direction, position + 10 * speed
