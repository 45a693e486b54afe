"""Vehicle Tracking (Figure 12a of paper 004): cars tell where they are, by latitude and longitude.

One query tells of cars that went faster than 70 km/h on average over the last two minutes, the other of cars with more
than nine positions within an area.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice, pairwise
from random import Random

from provenance_store.streams.examples.common import (
    BEGIN,
    MINUTE,
    SECOND,
    SourceEvent,
    chance_of,
    last,
    spread,
    together,
)
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger

STEP = 4 * SECOND
BY = ("car",)
# Around Yuyuantan Park in Beijing: the least and the greatest latitude, and longitude.
AREA = ((39.912, 39.924), (116.298, 116.328))

_SOURCE = Source(name="positions", dataset="vehicle-positions", lateness=8 * SECOND)
_EARTH_METRES = 6_371_000.0
_METRES_A_DEGREE = _EARTH_METRES * math.pi / 180


def speeding(limit: float = 70.0) -> StreamQuery:
    """Cars that were faster than the limit, in km/h. All is within one car."""
    operators = (
        Aggregate(
            name="speeds",
            input="positions",
            function=Function("vehicle-tracking-speed"),
            window=last(2 * MINUTE),
            trigger=Trigger("time", MINUTE // 2),
            by=("car",),
        ),
        Filter(
            name="speeding",
            input="speeds",
            function=Function("compare", {"field": "average", "comparison": ">", "value": limit}),
        ),
    )
    return _query("vehicle-tracking-speeding", operators, "speeding")


def visits(more_than: int = 9) -> StreamQuery:
    """Cars that were in the area for more than so many positions. All is within one car."""
    latitudes, longitudes = AREA
    within = Function("vehicle-tracking-within", {"latitudes": list(latitudes), "longitudes": list(longitudes)})
    operators = (
        Filter(name="in-area", input="positions", function=within),
        Aggregate(
            name="stays",
            input="in-area",
            function=Function("count"),
            window=last(5 * MINUTE),
            trigger=Trigger("time", MINUTE),
            by=("car",),
        ),
        Filter(
            name="visits",
            input="stays",
            function=Function("compare", {"field": "count", "comparison": ">", "value": more_than}),
        ),
    )
    return _query("vehicle-tracking-visits", operators, "visits")


def both() -> StreamQuery:
    """Both queries, as the paper runs them together."""
    return spread(together("vehicle-tracking", speeding(), visits()), BY)


def _query(name: str, operators: tuple[Aggregate | Filter, ...], stream: str) -> StreamQuery:
    sinks = (Sink(stream=stream, dataset=f"vehicle-{stream}"),)
    return spread(StreamQuery(name=name, sources=(_SOURCE,), operators=operators, sinks=sinks), BY)


@register("vehicle-tracking-speed")
def _speed(positions: Sequence[Content]) -> Content:
    """The way over the time, of the last two positions and of all, in km/h."""
    metres = [_metres(one, other) for one, other in pairwise(positions)]
    times = [position["time"] for position in positions]
    return {
        "positions": len(positions),
        "immediate": _kmh(metres[-1], times[-1] - times[-2]) if metres else 0.0,
        "average": _kmh(sum(metres), times[-1] - times[0]),
    }


def _kmh(metres: float, milliseconds: int) -> float:
    return round(3600 * metres / milliseconds, 3) if milliseconds else 0.0


def _metres(one: Content, other: Content) -> float:
    """The way between two positions on a sphere, by the haversine formula."""
    north, east = math.radians(other["lat"] - one["lat"]), math.radians(other["lon"] - one["lon"])
    cosines = math.cos(math.radians(one["lat"])) * math.cos(math.radians(other["lat"]))
    chord = math.sin(north / 2) ** 2 + cosines * math.sin(east / 2) ** 2
    return 2 * _EARTH_METRES * math.asin(math.sqrt(chord))


@register("vehicle-tracking-within")
def _within(position: Content, latitudes: Sequence[float], longitudes: Sequence[float]) -> bool:
    south, north = latitudes
    west, east = longitudes
    return bool(south <= position["lat"] <= north and west <= position["lon"] <= east)


@dataclass
class _Trip:
    """Steps at one speed and heading; then the car stands in a garage and tells nothing."""

    lat: float
    lon: float
    kmh: float
    heading: float
    left: int

    def move(self) -> None:
        """One step on."""
        metres = self.kmh / 3.6 * STEP / SECOND
        self.lat += metres * math.cos(self.heading) / _METRES_A_DEGREE
        self.lon += metres * math.sin(self.heading) / _METRES_A_DEGREE / math.cos(math.radians(self.lat))
        self.left -= 1


# What is planted: the first trip of each car is of one of these kinds, in this order; later trips are of any.
PLANTED = ("speeding", "just below", "visit", "nine positions", "beside the area")
# Longer than any window: what a car did before has no part in what it does then.
_PAUSE = 6 * MINUTE // STEP


def _begin(kind: str, chance: Random) -> _Trip:
    (south, north), (west, _) = AREA
    away, heading = (north + chance.uniform(0.02, 0.2), west), chance.uniform(-0.7, 0.7)
    match kind:
        case "speeding":
            return _Trip(*away, chance.uniform(80, 130), heading, chance.randint(35, 60))
        case "just below":
            return _Trip(*away, 69.5, heading, chance.randint(35, 60))
        case "visit":
            return _Trip(south + 0.002, west + 0.01, chance.uniform(2, 10), heading, chance.randint(12, 40))
        case "nine positions":
            return _Trip(south + 0.002, west + 0.01, 10.0, heading, 9)
        case _:
            return _Trip(north + 0.001, west + 0.01, chance.uniform(2, 60), heading, chance.randint(12, 40))


def generate(count: int, seed: int, keys: int = 10) -> Iterator[SourceEvent]:
    """Positions of `keys` cars."""
    return islice(_positions(chance_of(seed), keys), count)


def _positions(chance: Random, cars: int) -> Iterator[SourceEvent]:
    # Whole seconds, so that some cars tell in the same millisecond.
    phases = [chance.randrange(4) * SECOND for _ in range(cars)]
    order = sorted(range(cars), key=lambda car: phases[car])
    trips = [_begin(PLANTED[car % len(PLANTED)], chance) for car in range(cars)]
    for step in numbers():
        for car in order:
            trip = trips[car]
            if trip.left > 0:
                time = BEGIN + step * STEP + phases[car]
                yield {"time": time, "car": car, "lat": round(trip.lat, 6), "lon": round(trip.lon, 6)}
            trip.move()
            if trip.left == -_PAUSE:
                trips[car] = _begin(chance.choice(PLANTED), chance)
