"""How far back in time a result reaches: the paper's U, from the windows of a query alone.

A source's event of time t can lead to nothing any more once nothing before `until` can come and t < until - U: what is
made from then on is triggered at `until` or later, and reaches back to no earlier than U before its own time. U adds up
along each path, so where triggers do not meet the edges of windows it is more than what will be seen, and never less.
"""

from provenance_store.streams.operators import Operator
from provenance_store.streams.query import Sink, StreamQuery


def reach(query: StreamQuery) -> int | None:
    """The most milliseconds that an event of a source can lie before a result of any sink; None: without bound."""
    return _most([sink_reach(query, sink) for sink in query.sinks])


def sink_reach(query: StreamQuery, sink: Sink) -> int | None:
    """The most milliseconds that an event of a source can lie before a result of this sink; None: without bound."""
    reaches: dict[str, int | None] = {source.name: 0 for source in query.sources}
    for one in query.ordered():
        reaches[one.name] = _most([_add(reaches[name], step_reach(one, at)) for at, name in enumerate(one.inputs)])
    return reaches[sink.stream]


def step_reach(one: Operator, at: int) -> int | None:
    """The most milliseconds that an event of an operator's input can lie before one that is made from it."""
    rule = one.rule
    if rule.fires == "merge":
        return one.delay
    window, trigger = rule.windows[at], rule.trigger
    if window.kind == "time":
        return _add(-window.first, one.delay)
    if window.size > 1 or len(rule.windows) > 1:
        return None  # an event stays the last one for as long as no other comes
    # Of one event's window, the event that triggers it; or the first moment after it.
    return _add(0 if trigger.kind == "events" else trigger.every - 1 - window.last, one.delay)


def _add(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _most(reaches: list[int | None]) -> int | None:
    bounded = [one for one in reaches if one is not None]
    return max(bounded, default=0) if len(bounded) == len(reaches) else None
