"""How far back results reach, against the true ancestors of every event: never further than told, and just as far."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.functions import Function
from provenance_store.streams.operators import Aggregate, Join, Map, Operator, Product, Union
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.reach import reach, sink_reach
from provenance_store.streams.reference import Streams, execute, number_arrivals
from provenance_store.streams.windows import Trigger, Window
from tests.property.stream_queries import Case, cases, windows

COUNT = Function("count")


def query_of(operators: list[Operator], *streams: str) -> StreamQuery:
    read = sorted({name for one in operators for name in one.inputs} - {one.name for one in operators})
    return StreamQuery(
        name="reaching",
        sources=tuple(Source(name=name, dataset=f"in-{name}") for name in read),
        operators=tuple(operators),
        sinks=tuple(Sink(stream=name, dataset=f"out-{name}") for name in streams),
    )


class Ancestors:
    """The times of the sources' events behind each event."""

    def __init__(self, streams: Streams) -> None:
        self._events = {event.key: event for events in streams.values() for event in events}
        self._known: dict[EventKey, frozenset[int]] = {}

    def times(self, key: EventKey) -> frozenset[int]:
        if key not in self._known:
            parents = self._events[key].parents
            own = frozenset([key.timestamp])
            self._known[key] = frozenset[int]().union(*map(self.times, parents)) if parents else own
        return self._known[key]

    def furthest(self, results: list[Event]) -> int:
        """The most that a source's event lies before its result."""
        return max((one.key.timestamp - min(self.times(one.key)) for one in results), default=0)


@given(cases())
def test_no_ancestor_lies_further_back_than_told(case: Case) -> None:
    sources, _ = case.run_engine()
    streams = case.run_reference(sources)
    ancestors = Ancestors(streams)
    for one in case.query.operators:
        told = sink_reach(case.query, Sink(stream=one.name, dataset="out"))
        assert told is None or ancestors.furthest(streams[one.name]) <= told


@given(cases(measured=False))
def test_what_is_expired_leads_to_nothing_that_is_made_later(case: Case) -> None:
    told = reach(case.query)
    ancestors = Ancestors({**case.run_engine()[0], **case.run_engine()[1]})
    engine, passed = case.engine(), None
    for batch, until in case.batches:
        engine.add(batch)
        _, made = engine.advance(until)
        results = made.get(case.query.sinks[0].stream, [])
        if told is not None and passed is not None:
            assert all(min(ancestors.times(one.key)) >= passed - told for one in results)
        passed = until


@st.composite
def chains(draw: st.DrawFn) -> StreamQuery:
    operators: list[Operator] = []
    for at in range(draw(st.integers(1, 4))):
        common: dict[str, Any] = {"name": f"o{at}", "input": f"o{at - 1}" if at else "s0"}
        common["delay"] = draw(st.sampled_from([0, 0, 3]))
        window = draw(windows().filter(lambda window: window.kind == "time"))
        trigger = Trigger(draw(st.sampled_from(["events", "time"])))
        operators.append(Aggregate(**common, function=COUNT, window=window, trigger=trigger))
    return query_of(operators, operators[-1].name)


@given(chains())
def test_chains_of_time_windows_reach_as_far_as_told(query: StreamQuery) -> None:
    told = reach(query)
    assert told is not None
    events = number_arrivals("s0", [(time, 0, {"v": time}) for time in range(2 * told + 2)])
    streams = execute(query, {"s0": events}, 4 * told + 4)
    assert Ancestors(streams).furthest(streams[query.sinks[0].stream]) == told


@given(st.data())
def test_one_event_is_seen_until_the_next_moment(data: st.DataObject) -> None:
    every = data.draw(st.integers(1, 9))
    window = Window("length", 1, data.draw(st.sampled_from(["left", "right"])))
    trigger = Trigger("time", every, data.draw(st.integers(0, every - 1)))
    query = query_of([Aggregate(name="o", input="s", function=COUNT, window=window, trigger=trigger)], "o")
    seen = set()
    for time in range(every):
        streams = execute(query, {"s": number_arrivals("s", [(time, 0, {"v": 1})])}, 100)
        seen.add(Ancestors(streams).furthest(streams["o"]))
    assert max(seen) == reach(query)


FIVE = Window("time", 5, "both")
LAST = Window("length", 1)


@pytest.mark.parametrize(
    ("operators", "told"),
    [
        ([Map(name="o", input="s", function=Function("identity"), delay=2)], 2),
        ([Map(name="o", input="s", function=Function("identity"), delay=None)], None),
        ([Union(name="o", inputs=("s", "t"), delay=1)], 1),
        ([Aggregate(name="o", input="s", function=COUNT, window=Window("time", 5))], 4),
        ([Aggregate(name="o", input="s", function=COUNT, window=Window("length", 2))], None),
        ([Join(name="o", inputs=("s", "t"), windows=(FIVE, Window("time", 9)))], 8),
        ([Join(name="o", inputs=("s", "t"), windows=(FIVE, LAST))], None),
        ([Product(name="o", inputs=("s", "t"), windows=(FIVE, FIVE), trigger=Trigger("time", 3))], 5),
        ([Product(name="o", inputs=("s", "t"), windows=(FIVE, LAST), trigger=Trigger("time", 3))], None),
    ],
)
def test_operators_reach_as_far_as_their_windows(operators: list[Operator], told: int | None) -> None:
    assert reach(query_of(operators, "o")) == told


def test_the_furthest_sink_counts() -> None:
    near = Aggregate(name="near", input="s", function=COUNT, window=Window("time", 5))
    far = Aggregate(name="far", input="near", function=COUNT, window=FIVE)
    free = Aggregate(name="free", input="s", function=COUNT, window=Window("length", 3))
    both = query_of([near, far], "near", "far")
    assert [sink_reach(both, sink) for sink in both.sinks] == [4, 9]
    assert reach(both) == 9
    # Where what has no bound is no result, it does not count.
    assert reach(query_of([near, far, free], "near", "far")) == 9
    assert reach(query_of([near, far, free], "near", "free")) is None
    assert reach(query_of([near])) == 0
