"""Runs the papers' queries on source events, in each way that there is, and tells results with their sources."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.event import END, Event, EventKey
from provenance_store.streams.examples import Example
from provenance_store.streams.inference import Inference
from provenance_store.streams.keys import Keys
from provenance_store.streams.reference import Streams, ancestors, execute, number_arrivals
from provenance_store.streams.replay import replay
from tests.stream_oracles import Expected

# Of a stream, how often there is a result of this content from these source events.
Found: TypeAlias = dict[str, Counter[tuple[str, frozenset[int]]]]


def as_told(results: Mapping[str, Iterable[tuple[Any, frozenset[int]]]]) -> Found:
    return {
        stream: Counter((json.dumps(content, sort_keys=True), sources) for content, sources in found)
        for stream, found in results.items()
    }


def in_order(events: list[dict[str, Any]]) -> list[int]:
    """Their indices as their time has them; of one time, as they came."""
    return sorted(range(len(events)), key=lambda index: events[index]["time"])


def execute_whole(example: Example, events: list[dict[str, Any]]) -> Streams:
    (source,) = example.query.sources
    numbered = number_arrivals(source.name, [(event["time"], 0, event) for event in events])
    return execute(example.query, {source.name: numbered}, END)


def by_reference(example: Example, events: list[dict[str, Any]]) -> Found:
    order, streams = in_order(events), execute_whole(example, events)

    def results(stream: str) -> Iterable[tuple[Any, frozenset[int]]]:
        for event in streams[stream]:
            made_from = ancestors(example.query, streams, event.key)
            yield event.content, frozenset(order[key.sequence - 1] for key in made_from)

    return as_told({sink.stream: results(sink.stream) for sink in example.query.sinks})


def by_replay(example: Example, events: list[dict[str, Any]]) -> Found:
    """From the keys of events and the contents of first inputs alone."""
    order, streams = in_order(events), execute_whole(example, events)
    stored = {name: Keys.of(name, (event.key for event in made)) for name, made in streams.items()}
    inference = Inference(example.query, stored, END)

    def results(stream: str) -> Iterable[tuple[Any, frozenset[int]]]:
        places = np.arange(len(streams[stream]))
        again = replay(inference, lambda _, at: [events[order[place]] for place in at], stream, places)
        for place in places.tolist():
            made_from = again.ancestors(stream, place)
            yield again.contents[stream][place], frozenset(order[at] for _, at in made_from)

    return as_told({sink.stream: results(sink.stream) for sink in example.query.sinks})


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
