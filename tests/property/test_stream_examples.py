"""The papers' queries find what brute force finds, each result from the same source events, in any order of arrival."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.examples import EXAMPLES, Example
from provenance_store.streams.examples.common import mix
from provenance_store.streams.landing import END
from provenance_store.streams.reference import Streams, ancestors, execute, number_arrivals
from tests.stream_oracles import ORACLES, Expected

# Of a stream, how often there is a result of this content from these source events.
Found: TypeAlias = dict[str, Counter[tuple[str, frozenset[int]]]]


def as_told(results: Mapping[str, Iterable[tuple[Any, frozenset[int]]]]) -> Found:
    return {
        stream: Counter((json.dumps(content, sort_keys=True), sources) for content, sources in found)
        for stream, found in results.items()
    }


def by_reference(example: Example, events: list[dict[str, Any]]) -> Found:
    query = example.query
    (source,) = query.sources
    order = sorted(range(len(events)), key=lambda index: events[index]["time"])
    numbered = number_arrivals(source.name, [(event["time"], 0, event) for event in events])
    streams = execute(query, {source.name: numbered}, END)

    def results(stream: str) -> Iterable[tuple[Any, frozenset[int]]]:
        for event in streams[stream]:
            made_from = ancestors(query, streams, event.key)
            yield event.content, frozenset(order[key.sequence - 1] for key in made_from)

    return as_told({sink.stream: results(sink.stream) for sink in query.sinks})


def by_engine(example: Example, events: list[dict[str, Any]], batch: int, by: tuple[str, ...]) -> Found:
    """With an engine for each value of the fields `by`, all fed batch by batch, with the watermark of all."""
    query = example.query
    (source,) = query.sources
    lanes: dict[tuple[Any, ...], _Lane] = {}
    until = 0
    for first in range(0, len(events), batch):
        for index, event in enumerate(events[first : first + batch], start=first):
            key = tuple(event[field] for field in by)
            lane = lanes.setdefault(key, _Lane(example))
            lane.engine.add([Arrival(source.name, event["time"], ("events", index), 0, event)])
            until = max(until, event["time"] - source.lateness)
        for lane in lanes.values():
            lane.advance(until)
    found: Found = {sink.stream: Counter() for sink in query.sinks}
    for lane in lanes.values():
        lane.advance(END)
        assert lane.engine.late == 0
        for stream, results in as_told(lane.results()).items():
            found[stream] += results
    return found


class _Lane:
    def __init__(self, example: Example) -> None:
        self.engine = Engine(example.query, parents=True)
        self._query = example.query
        self._indices: dict[EventKey, int] = {}
        self._made: Streams = {one.name: [] for one in example.query.operators}

    def advance(self, until: int) -> None:
        entered, made = self.engine.advance(until)
        self._indices.update((event.key, index) for event, (_, index) in entered)
        for stream, events in made.items():
            self._made[stream] += events

    def results(self) -> Expected:
        known = {event.key: event for events in self._made.values() for event in events}

        def sources(event: Event) -> frozenset[int]:
            return frozenset().union(
                *(sources(known[key]) if key in known else {self._indices[key]} for key in event.parents)
            )

        return {
            sink.stream: [(event.content, sources(event)) for event in self._made[sink.stream]]
            for sink in self._query.sinks
        }


@st.composite
def arrivals(draw: st.DrawFn, example: Example) -> list[dict[str, Any]]:
    """Source events of a random seed, in an order in which they may come."""
    seeds = st.integers(0, 10_000)
    keys = draw(st.sampled_from([1, 3, 9, 14]))
    count = keys * draw(st.sampled_from([0, 1, 5, 30, 60])) + draw(st.integers(0, 20))
    made = example.generate(count, draw(seeds), keys)
    return list(mix(made, example.query.sources[0].lateness, draw(seeds)))


def test_every_example_has_an_oracle() -> None:
    assert set(ORACLES) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=15)
@given(st.data())
def test_reference_and_engine_find_what_brute_force_finds(name: str, data: st.DataObject) -> None:
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    expected = as_told(ORACLES[name](events))
    assert by_reference(example, events) == expected
    batch = data.draw(st.integers(1, 200))
    assert by_engine(example, events, batch, ()) == expected


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("seed", [1, 2])
def test_of_a_thousand_events_some_are_found(name: str, seed: int) -> None:
    example = EXAMPLES[name]
    events = list(example.events(1_000, seed))
    expected = as_told(ORACLES[name](events))
    assert all(expected.values())
    assert by_reference(example, events) == expected
    assert by_engine(example, events, 300, example.by) == expected


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.by])
@settings(max_examples=15)
@given(st.data())
def test_each_key_on_its_own_finds_the_same(name: str, data: st.DataObject) -> None:
    """So a query may be spread out by these fields."""
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    assert by_engine(example, events, data.draw(st.integers(1, 200)), example.by) == as_told(ORACLES[name](events))
