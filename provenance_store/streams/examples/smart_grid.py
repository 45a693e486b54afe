"""Smart Grid, as paper 004 evaluates with it: meters tell every hour what was consumed.

A blackout is where seven meters of the grid or more told of nothing in every hour of a day, so that an alert depends on
168 readings or more, and on 192 where eight were dark. A meter is abnormal that tells at midnight of more than half of
what it told of in the whole day before, as if to make up for it.
"""

from collections.abc import Iterator, Sequence
from itertools import count as numbers
from itertools import islice
from random import Random

from provenance_store.streams.examples.common import (
    BEGIN,
    DAY,
    HOUR,
    MINUTE,
    SourceEvent,
    chance_of,
    last,
    spread,
    together,
)
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter, Join
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger, Window

HOURS = 24
BY = ("meter",)
# Of a planted blackout; that of the paper is of 192 readings on average.
DARK = 8

_SOURCE = Source(name="readings", dataset="smart-grid-readings", lateness=5 * MINUTE)


def blackout(meters: int = 7) -> StreamQuery:
    """Days on which at least so many meters were dark. It needs each meter and then the whole grid: so no `by`."""
    operators = (
        Filter(
            name="nothing",
            input="readings",
            function=Function("compare", {"field": "consumption", "comparison": "==", "value": 0}),
        ),
        _a_day("dark-hours", "nothing"),
        Filter(
            name="dark",
            input="dark-hours",
            function=Function("compare", {"field": "hours", "comparison": "==", "value": HOURS}),
        ),
        Aggregate(
            name="grid",
            input="dark",
            function=Function("smart-grid-dark"),
            window=last(HOUR),
            trigger=Trigger("time", HOUR),
        ),
        Filter(name="blackouts", input="grid", function=Function("smart-grid-blackout", {"meters": meters})),
    )
    sinks = (Sink(stream="blackouts", dataset="smart-grid-blackouts"),)
    return StreamQuery(name="smart-grid-blackout", sources=(_SOURCE,), operators=operators, sinks=sinks)


def anomaly(times: int = 2) -> StreamQuery:
    """Meters whose reading at midnight, so many times, is more than the day before. All is within one meter."""
    operators = (
        _a_day("days", "readings"),
        Filter(name="midnights", input="readings", function=Function("smart-grid-midnight")),
        Join(
            name="compared",
            inputs=("days", "midnights"),
            windows=(Window("time", HOUR), Window("time", HOUR)),
            condition=Function("equal", {"field": "meter"}),
            function=Function("smart-grid-compare"),
        ),
        Filter(name="anomalies", input="compared", function=Function("smart-grid-abnormal", {"times": times})),
    )
    sinks = (Sink(stream="anomalies", dataset="smart-grid-anomalies"),)
    return spread(StreamQuery(name="smart-grid-anomaly", sources=(_SOURCE,), operators=operators, sinks=sinks), BY)


def both() -> StreamQuery:
    """Both queries, as the paper runs them together."""
    return together("smart-grid", blackout(), anomaly())


def _a_day(name: str, stream: str) -> Aggregate:
    """What each meter told of in a day."""
    function, trigger = Function("smart-grid-day"), Trigger("time", DAY)
    return Aggregate(name=name, input=stream, function=function, window=last(DAY), trigger=trigger, by=("meter",))


@register("smart-grid-day")
def _day(readings: Sequence[Content]) -> Content:
    return {
        "day": readings[0]["time"] // DAY,
        "hours": len({reading["time"] // HOUR for reading in readings}),
        "consumption": sum(reading["consumption"] for reading in readings),
    }


@register("smart-grid-dark")
def _dark(days: Sequence[Content]) -> Content:
    return {"day": days[0]["day"], "meters": sorted(day["meter"] for day in days)}


@register("smart-grid-blackout")
def _blackout(grid: Content, meters: int) -> bool:
    return len(grid["meters"]) >= meters


@register("smart-grid-midnight")
def _midnight(reading: Content) -> bool:
    return bool(reading["time"] % DAY < HOUR)


@register("smart-grid-compare")
def _compare(day: Content, midnight: Content) -> Content:
    return {
        "meter": day["meter"],
        "day": day["day"],
        "consumption": day["consumption"],
        "midnight": midnight["consumption"],
    }


@register("smart-grid-abnormal")
def _abnormal(compared: Content, times: int) -> bool:
    return bool(compared["midnight"] * times > compared["consumption"])


# What is planted, from the second day on a kind a day. At every midnight, one meter that has power also makes up for
# the whole day before, and another tells of just half of it.
PLANTED = ("blackout", "one too few", "an hour of light", "noon to noon")


def generate(count: int, seed: int, keys: int = 12) -> Iterator[SourceEvent]:
    """Readings of `keys` meters."""
    return islice(_readings(chance_of(seed), keys), count)


def _readings(chance: Random, meters: int) -> Iterator[SourceEvent]:
    # Whole minutes, so that some meters tell in the same millisecond.
    phases = [chance.randrange(10) * MINUTE for _ in range(meters)]
    order = sorted(range(meters), key=lambda meter: phases[meter])
    before = [0] * meters
    for day in numbers():
        dark = _dark_hours(PLANTED[(day - 1) % len(PLANTED)], meters) if day else {}
        lit = [meter for meter in range(meters) if before[meter] and 0 not in dark.get(meter, ())]
        special = chance.sample(lit, min(2, len(lit)))
        sums = [0] * meters
        for hour in range(HOURS):
            for meter in order:
                consumption = 0 if hour in dark.get(meter, ()) else chance.randint(100, 900)
                if hour == 0 and meter in special:
                    consumption = before[meter] // (1, 2)[special.index(meter)]
                sums[meter] += consumption
                time = BEGIN + day * DAY + hour * HOUR + phases[meter]
                yield {"time": time, "meter": meter, "consumption": consumption}
        before = sums


def _dark_hours(kind: str, meters: int) -> dict[int, range]:
    """The hours of a day in which meters tell of nothing."""
    some, others = range(min(DARK, meters)), range(DARK, meters, 2)
    match kind:
        case "one too few":
            return dict.fromkeys(some[:6], range(HOURS))
        case "an hour of light":
            return dict.fromkeys(some, range(HOURS - 1)) | dict.fromkeys(some[:6], range(HOURS))
        case "noon to noon":  # and the next day is that of the blackout, which others are not in
            return dict.fromkeys(others, range(HOURS // 2, HOURS))
        case _:
            return dict.fromkeys(some, range(HOURS)) | dict.fromkeys(others, range(HOURS // 2))
