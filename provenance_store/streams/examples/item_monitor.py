"""ItemMonitor, the case study of paper 001 (Section 8): visits of a shop's items, and warnings.

It has the paper's bug: visits of a period are added as 32-bit integers, so that an item with very many of them is told
to have a number below zero.
"""

from collections.abc import Iterator, Sequence
from itertools import count as numbers
from itertools import islice
from random import Random
from typing import Any

from provenance_store.streams.examples.common import BEGIN, SECOND, SourceEvent, chance_of, last
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Process, UserFunction
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger

PERIOD = 5 * SECOND
TIMES = 1_000

_SOURCE = Source(name="lines", dataset="item-lines", lateness=SECOND)
_HALF = 1 << 31


def item_monitor(times: int = TIMES) -> StreamQuery:
    """Visits of each item a period, and warnings. The item is known only after its line was read: so no `by`."""
    operators = (
        UserFunction(name="behaviour", input="lines", function=Function("item-monitor-read")),
        Aggregate(
            name="visits",
            input="behaviour",
            function=Function("item-monitor-add"),
            window=last(PERIOD),
            trigger=Trigger("time", PERIOD),
            by=("item",),
        ),
        Process(
            name="warnings", input="visits", function=Function("item-monitor-watch", {"times": times}), by=("item",)
        ),
    )
    return StreamQuery(
        name="item-monitor",
        sources=(_SOURCE,),
        operators=operators,
        sinks=(Sink(stream="visits", dataset="item-visits"), Sink(stream="warnings", dataset="item-warnings")),
    )


@register("item-monitor-read")
def _read(lines: Sequence[Content]) -> list[Content]:
    """What a line tells, and nothing of one that cannot be read."""
    fields = lines[0]["line"].split(",")
    try:
        item, visits, _ = map(int, fields)
    except ValueError:
        return []
    return [{"item": item, "visits": visits}]


@register("item-monitor-add")
def _add(behaviour: Sequence[Content]) -> Content:
    """The sum as 32-bit integers have it, in two's complement."""
    total = 0
    for one in behaviour:
        total = (total + one["visits"] + _HALF) % (2 * _HALF) - _HALF
    return {"visits": total}


@register("item-monitor-watch")
def _watch(memory: Any, period: Content, times: int) -> tuple[Any, list[Content]]:
    """Warns of numbers below zero, and of sudden peaks over the period before; remembers that and the most ever."""
    visits = period["visits"]
    most = memory["most"] if memory else None
    if visits < 0:
        return memory, [period | {"warning": "ABNORMAL", "most": most}]
    is_peak = memory is not None and visits > times * memory["last"]
    warnings = [period | {"warning": "PEAK", "most": most}] if is_peak else []
    return {"last": visits, "most": visits if most is None else max(most, visits)}, warnings


# The paper's item (Table 5), as its lines are.
ITEM = 1_769_192
LINES = (
    "1769192,5327,1559688951",
    "1769192,321791,1551688946",
    "1769192,2146425285,1561688967",
    "1769192,731254,1573688967",
)
# What is planted beside it, as (period, item, visits), again and again: a peak, and near misses of a peak and of an
# overflow; and lines that cannot be read.
PLANTED = (
    (0, ITEM + 1, 2),
    (1, ITEM + 1, 2 * TIMES + 1),
    (0, ITEM + 2, 2),
    (1, ITEM + 2, 2 * TIMES),
    (2, ITEM + 3, _HALF - 8),
    (2, ITEM + 3, 7),
)
UNREADABLE = ("", "1769192", "1769192,many,1559688951")
_AGAIN = 20


def generate(count: int, seed: int, keys: int = 20) -> Iterator[SourceEvent]:
    """Lines of `keys` items and of those that are planted."""
    return islice(_lines(chance_of(seed), keys), count)


def _lines(chance: Random, items: int) -> Iterator[SourceEvent]:
    for period in numbers():
        planted = [f"{item},{visits},{_seconds(period)}" for at, item, visits in PLANTED if at == period % _AGAIN]
        lines = [*planted, *(LINES if period % _AGAIN == 1 else ()), chance.choice(UNREADABLE)]
        lines += [f"{chance.randrange(items)},{chance.randint(1, 50)},{_seconds(period)}" for _ in range(2 * items)]
        chance.shuffle(lines)
        times = sorted(BEGIN + period * PERIOD + chance.randrange(0, PERIOD, 100) for _ in lines)
        yield from ({"time": time, "line": line} for time, line in zip(times, lines, strict=True))


def _seconds(period: int) -> int:
    return (BEGIN + period * PERIOD) // SECOND
