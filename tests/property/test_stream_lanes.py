"""Lanes are queries of their own; trails tell where events came from; what is told live is true, once and in order."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.model.ids import RecordId
from provenance_store.streams.assertions import read_table
from provenance_store.streams.engine import Engine, Plan
from provenance_store.streams.event import END, EventKey
from provenance_store.streams.folders import Workshop
from provenance_store.streams.functions import Function
from provenance_store.streams.landing import Landing
from provenance_store.streams.lanes import Lanes, bucket_of
from provenance_store.streams.live import Edge
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.operators import Map
from provenance_store.streams.query import Source, StreamQuery
from provenance_store.streams.reference import Streams, ancestors, execute
from provenance_store.streams.telling import Expiry, Telling
from provenance_store.streams.trails import Leaf
from tests.live_checks import assert_told_once_in_order, in_order
from tests.property.stream_queries import Case, cases

RUN = "live-1"


@given(cases())
def test_trails_lead_to_the_true_sources_and_nothing_that_is_forgotten_is_used_again(case: Case) -> None:
    found: dict[EventKey, set[tuple[str, int]]] = {}
    forgotten: set[tuple[str, int]] = set()
    entered_ever: set[tuple[str, int]] = set()
    state = None
    for arrivals, until in case.batches:
        engine = Engine(Plan(case.query, lag=case.lag, trails=True), state)
        engine.add(arrivals)
        entered, made = engine.advance(until)
        for event, (file, position) in entered:
            engine.enter(event.key.stream, event.key.sequence, Leaf(event.key.timestamp, file, position))
            entered_ever.add((event.key.stream, position))
        for event in [event for events in made.values() for event in events]:
            found[event.key] = {(source, leaf.position) for source, leaf in engine.sources_of(event.key)}
            assert not found[event.key] & forgotten
        forgotten = entered_ever - {(source, leaf.position) for source, leaf in engine.forget()}
        state = engine.put_away()
    places = {(one.source, one.time, one.origin[1]): one for arrivals, _ in case.batches for one in arrivals}
    assert len(places) == sum(len(arrivals) for arrivals, _ in case.batches)
    sources, _ = case.run_engine()
    streams = case.run_reference(sources)
    numbers = dict(_positions(case))
    for name in [one.name for one in case.query.operators]:
        for event in streams[name]:
            true = {
                (key.stream, numbers[key.stream, key.sequence]) for key in ancestors(case.query, streams, event.key)
            }
            assert found[event.key] == true


def _positions(case: Case) -> Iterator[tuple[tuple[str, int], int]]:
    state = None
    for arrivals, until in case.batches:
        engine = case.engine(state)
        engine.add(arrivals)
        for event, (_, position) in engine.advance(until)[0]:
            yield (event.key.stream, event.key.sequence), position
        state = engine.put_away()


def laned(case: Case) -> StreamQuery:
    return msgspec.structs.replace(case.query, by=("v",))


@given(cases(), st.integers(1, 3))
def test_a_lane_is_the_query_on_the_events_of_its_key(case: Case, buckets: int) -> None:
    query = laned(case)
    plan = Plan(query, lag=case.lag, parents=True)
    states: dict[int, bytes] = {}
    made: dict[int, Streams] = {}
    keys: dict[int, int] = {}
    for arrivals, until in case.batches:
        for bucket in range(buckets):
            lanes = Lanes(plan, bucket, states.get(bucket))
            lanes.add(one for one in arrivals if bucket_of(query, one.content, buckets) == bucket)
            for move in lanes.advance(until):
                keys.update((move.lane, event.content["v"]) for event, _ in move.entered)
                for name, events in move.made.items():
                    made.setdefault(move.lane, {}).setdefault(name, []).extend(events)
            states[bucket] = lanes.put_away()
    assert len(set(keys.values())) == len(keys)
    for lane, key in keys.items():
        alone = Case(
            case.query, [([a for a in some if a.content["v"] == key], until) for some, until in case.batches], case.lags
        )
        _, expected = alone.run_engine()
        assert {name: events for name, events in made.get(lane, {}).items() if events} == {
            name: events for name, events in expected.items() if events
        }


@settings(max_examples=40)
@given(cases(measured=False), st.sampled_from(["exact", "reach"]), st.data())
def test_live_provenance_is_true_and_told_once_in_order_whatever_is_done_again(
    case: Case, expiry: Expiry, data: st.DataObject
) -> None:
    query = laned(case)
    with tempfile.TemporaryDirectory() as scratch:
        workshop = Workshop(Path(scratch), RUN, query)
        workshop.open()
        plan, landing, telling = Plan(query, trails=True), Landing(workshop, trace=True), Telling(query, RUN, expiry)
        sent: list[LiveMessage] = []
        state: bytes | None = None
        for arrivals, until in [*case.batches, ([], END)]:
            for _ in range(data.draw(st.integers(1, 2))):  # killed before its commit, a step is made again
                lanes = Lanes(plan, 0, state, telling.begin)
                come = data.draw(st.permutations(arrivals))
                lanes.add(msgspec.structs.replace(one, origin=("v/f", one.origin[1])) for one in come)
                landed = landing.take(lanes, lanes.advance(until))
                messages = list(telling.messages(lanes, landing, landed))
                sent += messages
                after = lanes.put_away()
            state = after
        elements = list(in_order(sent))
        assert_told_once_in_order(elements)
        edges = {(edge.output, edge.input) for edge in elements if isinstance(edge, Edge)}
        assert edges == true_edges(case, query, workshop)


def true_edges(case: Case, query: StreamQuery, workshop: Workshop) -> set[tuple[str, str]]:
    """By the reference on the events of each key; the keys that were stored tell which record is which event."""
    (sink,) = query.sinks
    datasets = {source.name: source.dataset for source in query.sources}
    key_of = {one.origin[1]: one.content["v"] for arrivals, _ in case.batches for one in arrivals}
    lanes: dict[int, int] = {}
    for source in datasets:
        lanes |= {row["lane"]: key_of[row["position"]] for row in stored(workshop, source)}
    results = {
        (lanes[row["lane"]], row["sequence"]): f"lake:{sink.dataset}/{row['file']}#{row['position']}"
        for row in stored(workshop, f"{sink.stream}@{sink.dataset}")
    }
    found: set[tuple[str, str]] = set()
    for key in set(lanes.values()):
        batches = [([one for one in some if one.content["v"] == key], until) for some, until in case.batches]
        alone = Case(case.query, [*batches, ([], END)], case.lags)
        numbers = dict(_positions(alone))
        streams = execute(case.query, alone.run_engine()[0], END)
        for event in streams[sink.stream]:
            for one in ancestors(case.query, streams, event.key):
                source = f"lake:{datasets[one.stream]}/v/f#{numbers[one.stream, one.sequence]}"
                found.add((results[key, event.key.sequence], source))
    return found


def stored(workshop: Workshop, stream: str) -> list[dict[str, Any]]:
    folder = workshop.kept / "keys" / stream
    return read_table(folder).with_columns(pl.col("file").cast(pl.String)).to_dicts() if folder.is_dir() else []


def test_what_is_measured_cannot_be_told_live() -> None:
    query = StreamQuery(
        name="q",
        sources=(Source(name="x", dataset="d"),),
        operators=(Map(name="y", input="x", function=Function("identity"), delay=None),),
    )
    with pytest.raises(InputError, match="give it a delay"):
        Telling(query, "r")


def test_an_id_of_a_source_is_that_of_its_record(tmp_path: Path) -> None:
    query = StreamQuery(name="q", sources=(Source(name="x", dataset="d"),))
    one = Landing(Workshop(tmp_path, "r", query)).source_id("x", Leaf(0, "v 1/a/b.jsonl", 7))
    assert RecordId.parse(one).file == "a/b.jsonl"
