"""Random queries on real Structured Streaming, over a real topic and real files, out of order, delayed and too late.

One description holds many random queries, so that one job runs them all. What it captures is held to the reference, and
what is inferred from its assertions to what it captured. On the way the job dies between writing a batch and
its commit, and is begun again.
"""

import json
import random
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

from provenance_store.errors import JobError, UnknownRecordError
from provenance_store.lake.contents import read_lines
from provenance_store.lake.layout import new_version, resolve, version_of
from provenance_store.settings import Settings
from provenance_store.streams.assertions import read_table
from provenance_store.streams.event import END, Event, EventKey
from provenance_store.streams.execution import Execution
from provenance_store.streams.functions import Function
from provenance_store.streams.lanes import Lanes
from provenance_store.streams.operators import Aggregate, Filter, Join, Operator
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.reference import Streams, execute
from provenance_store.streams.runs import Links, StreamRun
from provenance_store.streams.windows import Trigger, Window
from provenance_store.transport.kafka import KafkaTransport, open_producer
from spark_apps.streams.job import StreamJob
from spark_apps.streams.processor import Bench, join_parts, part
from tests.property import stream_queries

RUN = "stream-1"
TOPIC = "readings"
EVENTS = 75
QUERIES = 6


@dataclass(frozen=True)
class Finished:
    lake: Path
    query: StreamQuery
    run: StreamRun
    streams: Streams
    links: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    known: dict[EventKey, frozenset[EventKey]] = field(default_factory=dict)

    @cached_property
    def parents(self) -> dict[EventKey, tuple[EventKey, ...]]:
        return {event.key: event.parents for events in self.streams.values() for event in events}

    def ancestors(self, key: EventKey) -> frozenset[EventKey]:
        """As the reference has them, each computed once."""
        if key not in self.known:
            parents = self.parents[key]
            self.known[key] = (
                frozenset[EventKey]().union(*map(self.ancestors, parents)) if parents else frozenset([key])
            )
        return self.known[key]

    def table(self, stream: str) -> pl.DataFrame:
        return read_table(self.lake / "_streams" / RUN / "keys" / stream)

    def results(self, sink: Sink) -> list[str]:
        name = f"{sink.stream}@{sink.dataset}"
        if not (self.lake / "_streams" / RUN / "keys" / name).is_dir():
            assert not self.streams[sink.stream]
            return []
        rows = self.table(name).select("file", "position").rows()
        return [f"lake:{sink.dataset}/{file}#{position}" for file, position in rows]

    def true_links(self, sink: Sink, results: list[str]) -> set[tuple[str, str]]:
        """Pairs of ids, by what the reference saw."""
        if sink.dataset not in self.links:
            self.links[sink.dataset] = self._true_links(sink, results)
        return self.links[sink.dataset]

    def _true_links(self, sink: Sink, results: list[str]) -> set[tuple[str, str]]:
        ids = {}
        for source in self.query.sources:
            rows = self.table(source.name).select("sequence", "file", "position").rows()
            ids |= {(source.name, n): f"lake:{source.dataset}/{file}#{at}" for n, file, at in rows}
        events = self.streams[sink.stream]
        return {
            (result, ids[key.stream, key.sequence])
            for result, event in zip(results, events, strict=True)
            for key in self.ancestors(event.key)
        }


def renamed(query: StreamQuery, number: int) -> list[Operator]:
    """The operators of one of many random queries, under names of their own."""
    made = {one.name: f"q{number}{one.name}" for one in query.operators}
    operators = []
    for one in query.operators:
        fields: dict[str, Any] = {"name": made[one.name]}
        if "input" in one.__struct_fields__:
            fields["input"] = made.get(one.inputs[0], one.inputs[0])
        else:
            fields["inputs"] = tuple(made.get(name, name) for name in one.inputs)
        operators.append(msgspec.structs.replace(one, **fields))
    return operators


def random_queries() -> StreamQuery:
    drawn: list[StreamQuery] = []

    @settings(max_examples=60, phases=[Phase.generate], derandomize=True, suppress_health_check=list(HealthCheck))
    @given(stream_queries.queries(measured=False))
    def draw(query: StreamQuery) -> None:
        drawn.append(query)

    draw()
    drawn = sorted(drawn, key=lambda query: len(query.operators))[-QUERIES:]
    operators: list[Operator] = [one for number, query in enumerate(drawn) for one in renamed(query, number)]
    window = Window("time", 200)
    # Queries as people write them, beside the random ones: these make a lot.
    operators += [
        Filter(name="high", input="s0", function=Function("test.odd"), numbering="own"),
        Aggregate(
            name="often",
            input="high",
            function=Function("count"),
            window=Window("length", 5),
            trigger=Trigger("events", 3),
        ),
        Join(name="both", inputs=("s1", "often"), windows=(window, window), condition=Function("test.same-group")),
        Aggregate(
            name="groups",
            input="s1",
            function=Function("count"),
            window=Window("time", 100, "left"),
            trigger=Trigger("time", 50),
            by=("g",),
        ),
    ]
    streams = [one.name for one in operators]
    return StreamQuery(
        name="random",
        sources=(
            Source(name="s0", dataset="landed", topic=TOPIC, lateness=60),
            Source(name="s1", dataset="logs", lateness=60),
        ),
        operators=tuple(operators),
        sinks=tuple(Sink(stream=name, dataset=f"out-{name}") for name in streams),
    )


def contents(seed: int) -> list[bytes]:
    """Events out of order by up to 50 ms, some at one time, and a few that come much too late."""
    chance = random.Random(seed)
    made = []
    for number in range(EVENTS):
        time = 1_000 + 4 * number - chance.choice([0, 0, 10, 30, 50]) - (900 if number % 25 == 24 else 0)
        made.append(json.dumps({"time": max(0, time), "v": chance.randrange(50), "g": chance.randrange(3)}).encode())
    return made


class DyingBench(Bench):
    """Writes a step's files, and dies before Spark commits it: in the second step."""

    def open(self) -> Execution:
        execution = super().open()
        step = execution.step

        def write_and_die(lanes: Lanes, *given: Any) -> Any:
            made = step(lanes, *given)
            if lanes.step > 1:
                raise RuntimeError("killed")
            return made

        execution.step = write_and_die  # type: ignore[method-assign]
        return execution


@pytest.fixture(scope="module")
def finished(
    spark_session: SparkSession, kafka_service: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    for module in (stream_queries, sys.modules[__name__]):
        register_pickle_by_value(module)  # workers know nothing of the tests
    home = tmp_path_factory.mktemp("streams")
    world = kafka_service.model_copy(update={"home": home, "lake": home / "lake"})
    KafkaTransport(world).ensure_topics(TOPIC)
    producer = open_producer(world)
    sent = [producer.send(TOPIC, value=value) for value in [*contents(1), b"no event", b'{"time": "noon"}']]
    for future in sent:
        future.get(timeout=30)
    producer.close()
    with new_version(version_of(world.lake, "logs", "v1"), {}) as folder:
        lines = contents(2)
        for number in range(3):
            (folder / f"part-{number}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines[number * 25 :][:25]))
    query = random_queries()
    job = StreamJob(spark_session, world, query, RUN, capture=True, batch=30)
    job._bench.__class__ = DyingBench
    with pytest.raises(JobError, match="could not go on"):
        job.follow(lambda: False)
    job = StreamJob(spark_session, world, query, RUN, capture=True, batch=30)
    job.catch_up()
    job.finish()
    run = StreamRun(world.lake, RUN)
    sources = {source.name: _events(world.lake, run, source) for source in query.sources}
    return Finished(world.lake, query, run, execute(query, sources, END))


def _events(lake: Path, run: StreamRun, source: Source) -> list[Event]:
    keys = run.inference().keys(source.name)
    return [
        Event(key, content)
        for key, content in zip(keys.rows(), run.contents(source.name, np.arange(len(keys))), strict=True)
    ]


def test_the_job_makes_what_the_reference_makes(finished: Finished) -> None:
    assert 0 < finished.run.facts.late < 10
    assert finished.run.facts.rejected == 2
    assert sum(len(events) for events in finished.streams.values()) > 400
    for sink in finished.query.sinks:
        version = resolve(finished.lake, f"{sink.dataset}/{RUN}")
        lines = [line for file in version.files() for line in read_lines(version, file.name, _offsets(file))]
        made = sorted((msgspec.json.decode(line or b"") for line in lines), key=lambda record: record["sequence"])
        expected = finished.streams[sink.stream]
        assert [(one["timestamp"], one["sequence"], one["delay"]) for one in made] == [
            (event.key.timestamp, event.key.sequence, event.key.delay) for event in expected
        ]
        assert [one["content"] for one in made] == msgspec.to_builtins([event.content for event in expected])


def test_it_captures_the_true_parents(finished: Finished) -> None:
    for one in finished.query.operators:
        folder = finished.lake / "_streams" / RUN / "captured" / one.name
        captured = read_table(folder).rows() if folder.is_dir() else []
        true = [(e.key.sequence, p.stream, p.sequence) for e in finished.streams[one.name] for p in e.parents]
        assert sorted(captured) == sorted(true)


def test_inferred_ancestors_are_the_captured_ones_where_exact_and_contain_them_elsewhere(finished: Finished) -> None:
    exact = bounded = 0
    for sink in finished.query.sinks:
        results = finished.results(sink)
        links = finished.run.backward(results)
        found, certain = pairs(links), pairs(links, exact_only=True)
        true = finished.true_links(sink, results)
        assert certain <= true <= found
        exact += found == true == certain
        bounded += certain < found
    assert exact > bounded > 0


def test_a_replay_makes_the_bounded_ones_exact(finished: Finished) -> None:
    for sink in finished.query.sinks:
        results = finished.results(sink)
        links = finished.run.backward(results, replayed=True)
        assert all(links.exact)
        assert pairs(links) == finished.true_links(sink, results)


def test_forward_is_backward_the_other_way_round(finished: Finished) -> None:
    sinks = {sink.dataset: finished.results(sink) for sink in finished.query.sinks}
    backward = pairs(finished.run.backward([one for results in sinks.values() for one in results]))
    inputs = sorted({source for _, source in backward})
    assert pairs(finished.run.forward(inputs)) == backward
    true = {pair for sink in finished.query.sinks for pair in finished.true_links(sink, sinks[sink.dataset])}
    assert pairs(finished.run.forward(inputs[:20], replayed=True)) == {pair for pair in true if pair[1] in inputs[:20]}


def test_what_the_run_did_not_make_is_told(finished: Finished) -> None:
    with pytest.raises(UnknownRecordError, match="did not make"):
        finished.run.backward([f"lake:out-high/{RUN}/part-000-000001.jsonl#3"])


def pairs(links: Links, *, exact_only: bool = False) -> set[tuple[str, str]]:
    rows = zip(links.outputs, links.inputs, links.exact, strict=True)
    return {(output, source) for output, source, exact in rows if exact or not exact_only}


def _offsets(file: Path) -> list[int]:
    lines = file.read_bytes().splitlines(keepends=True)
    return [0, *np.cumsum([len(line) for line in lines]).tolist()][: len(lines)]


def test_a_state_of_many_parts_is_whole_or_refused() -> None:
    state = random.Random(3).randbytes(3 * (1 << 20) + 5)
    rows = part(state)
    assert len(rows) == 5
    assert join_parts(reversed(rows)) == state
    with pytest.raises(JobError, match="not as it was put away"):
        join_parts([*rows[:-1], (4, b"\0" * 5)])
