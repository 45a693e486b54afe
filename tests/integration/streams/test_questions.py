"""The same questions of streams as of any job: from a batch job's output through a stream to its sources, and back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from provenance_store.graph.answer import Answer
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.contents import all_lines
from provenance_store.lake.layout import new_version, resolve, version_of
from provenance_store.model.ids import file_prefix
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import select_ids
from provenance_store.settings import Settings
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.functions import Function
from provenance_store.streams.operators import Aggregate, Average
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.windows import Trigger, Window
from tests.handmade import tell
from tests.reduced import write_reduced

RUN, BATCH_RUN, LATE = "stream-questions", "batch-questions", 6


@dataclass(frozen=True)
class Lake:
    graph: LakeGraph
    readings: list[str]
    averages: list[str]
    groups: list[str]
    report: str
    run: StreamRun
    settings: Settings


def ids_of(root: Path, dataset: str, version: str) -> list[str]:
    found = resolve(root, f"{dataset}/{version}")
    names = [found.name_of(file) for file in found.files()]
    return [
        f"{file_prefix(dataset, version, name)}{position}"
        for name in names
        for positions, _ in all_lines(found, name)
        for position in positions.tolist()
    ]


@pytest.fixture(scope="module")
def lake(neo4j_service: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Eight readings, one of them too late; averages of each two that follow; counts by sensor; a report over all."""
    home = tmp_path_factory.mktemp("questions")
    world = neo4j_service.model_copy(update={"lake": home / "lake", "recordings": home / "recordings"})
    contents = [{"time": 10 * n, "value": float(n), "sensor": n % 2} for n in range(8)]
    with new_version(version_of(world.lake, "q-readings", "v1"), {}) as folder:
        (folder / "part.jsonl").write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in contents))
    readings = ids_of(world.lake, "q-readings", "v1")
    query = StreamQuery(
        name="q-stream",
        sources=(Source(name="x", dataset="q-readings"),),
        operators=(
            Average(name="y", input="x", field="value", window=Window("length", 2), trigger=Trigger("events", 2)),
            Aggregate(
                name="z",
                input="x",
                function=Function("count"),
                window=Window("length", 8),
                trigger=Trigger("events", 7),
                by=("sensor",),
            ),
        ),
        sinks=(Sink(stream="y", dataset="q-averages"), Sink(stream="z", dataset="q-groups")),
    )
    arrivals = [
        Arrival("x", one["time"], ("v1/part.jsonl", int(record.rpartition("#")[2])), 0, one)  # type: ignore[arg-type]
        for one, record in zip(contents, readings, strict=True)
    ]
    late = arrivals.pop(LATE)
    run_locally(home, world.lake, query, RUN, [(arrivals[::-1], 75), ([late], 75)])
    averages, groups = ids_of(world.lake, "q-averages", RUN), ids_of(world.lake, "q-groups", RUN)
    report = f"lake:q-report/{BATCH_RUN}/part#0"
    with LakeGraph(world) as graph:
        graph.merge(world.lake / "_streams" / RUN)
        graph.merge(write_reduced(home / "batch", BATCH_RUN, [(report, one) for one in averages]))
        yield Lake(graph, readings, averages, groups, report, StreamRun(world.lake, RUN), world)


def edges(answer: Answer) -> set[tuple[str, str, str, bool]]:
    return {(edge.output, edge.input, edge.known, edge.exact) for edge in answer.edges}


def test_a_trace_goes_on_from_a_batch_job_through_a_stream_to_its_sources(lake: Lake) -> None:
    answer = lake.graph.backward([lake.report])
    on_time = [one for number, one in enumerate(lake.readings) if number != LATE]
    pairs = [(average, one) for at, average in enumerate(lake.averages) for one in on_time[2 * at : 2 * at + 2]]
    captured = {(lake.report, one, "captured", True) for one in lake.averages}
    assert len(lake.averages) == 3
    assert edges(answer) == captured | {(*pair, "inferred", True) for pair in pairs}
    assert {(one.id, one.dataset, one.depth) for one in answer.records} == {
        *((one, "q-averages", 1) for one in lake.averages),
        *((one, "q-readings", 2) for one in on_time[:6]),
    }
    assert answer.verdict == "complete"
    assert {run.run for run in answer.runs} == {RUN, BATCH_RUN}
    assert "accuracy" not in json.loads(answer.to_json())
    # The report is made of averages, which are exact, and of nothing that is not.
    both = lake.graph.backward([lake.report, lake.groups[0]])
    assert both.accuracy == 9 / 10
    told = json.loads(answer.to_json())["edges"][0]
    assert {"output", "input", "run", "known", "exact"} == set(told)


def test_filters_and_pages_hold_for_records_that_only_assertions_tell_of(lake: Lake) -> None:
    sources = lake.graph.backward([lake.report], sources_only=True)
    assert {one.dataset for one in sources.records} == {"q-readings"}
    assert [one.id for one in lake.graph.backward([lake.report], to="q-averages").records] == sorted(lake.averages)
    assert len(lake.graph.backward([lake.averages[0]], depth=1).records) == 2
    paths = lake.graph.between(lake.report, lake.readings[3])
    assert paths.depends
    assert paths.shortest() == [lake.report, lake.averages[1], lake.readings[3]]
    assert {one.id for one in lake.graph.common(lake.averages[:1] + lake.groups[:1]).records()} >= {lake.readings[0]}


def test_forward_reaches_results_and_what_was_made_of_them(lake: Lake) -> None:
    answer = lake.graph.forward([lake.readings[0]])
    assert {one.id for one in answer.records} == {lake.averages[0], *lake.groups, lake.report}
    assert not lake.graph.forward([lake.readings[LATE]]).records
    assert {one.id for one in lake.graph.only_from([lake.readings[0], lake.readings[1]]).records()} == {
        lake.averages[0]
    }


def test_what_keys_do_not_tell_is_not_exact_until_it_is_replayed(lake: Lake) -> None:
    even = lake.groups[0]
    bounded = lake.graph.backward([even])
    assert {known for *_, known in ((edge.known, edge.exact) for edge in bounded.edges)} == {False}
    assert len(bounded.records) == 7
    assert bounded.accuracy == 0
    assert json.loads(bounded.to_json())["accuracy"] == 0
    replayed = lake.graph.backward([even], replay=True)
    assert {(edge.known, edge.exact) for edge in replayed.edges} == {("replayed", True)}
    assert {one.id for one in replayed.records} == {lake.readings[n] for n in (0, 2, 4)}
    forward = lake.graph.forward([lake.readings[1]], to="q-groups", replay=True)
    assert [one.id for one in forward.records] == [lake.groups[1]]


def test_a_purge_reaches_the_results_of_streams(lake: Lake) -> None:
    found = lake.graph.consequences([lake.readings[2]], selection="s")
    # By sensor, the third reading went into the first group alone: a replay told.
    assert set(found.ids.to_pylist()) == {lake.averages[1], lake.groups[0], lake.report}
    assert found.verdict == "complete"


def test_a_plan_of_a_purge_names_the_results_of_streams(lake: Lake) -> None:
    for dataset in ("q-readings", "q-averages", "q-groups"):
        tell(lake.settings.lake, f'[{dataset}]\nformat = "jsonl"\npolicy = {{ do = "delete" }}\n')
    selection = select_ids(lake.settings, [lake.readings[2]], by="engineer")
    stored = make_plan(lake.settings, lake.graph, selection.id, by="engineer")
    steps = {step.dataset: (step.policy, step.selected, step.reached) for step in stored.plan.steps}
    assert steps["q-readings"] == ("delete", 1, 0)
    assert steps["q-averages"] == ("delete", 0, 1)
    assert steps["q-groups"] == ("delete", 0, 1)
    assert not [one for one in stored.plan.incomplete if RUN in one]


def test_without_its_assertions_a_stream_is_known_by_versions_and_says_so(
    lake: Lake, neo4j_service: Settings, tmp_path: Path
) -> None:
    with LakeGraph(neo4j_service.model_copy(update={"lake": tmp_path / "elsewhere"})) as graph:
        answer = graph.backward([lake.averages[0]])
    assert [(one.id, one.dataset) for one in answer.records] == [("lake:q-readings/v1", "q-readings")]
    assert {(edge.known, edge.exact) for edge in answer.edges} == {("declared", False)}
    assert answer.verdict == "unknown"


def test_assertions_can_be_asked_in_cypher(lake: Lake) -> None:
    stored = lake.graph.store_assertions(RUN)
    assert stored == lake.graph.store_assertions(RUN) == 7 + 3 + 2
    rows = lake.graph.cypher(
        "MATCH (y:Assertion {run: $run, stream: 'y', sequence: $number}), (x:Assertion {run: $run, stream: 'x'}) "
        "WHERE x.timestamp <= y.timestamp - y.delay WITH x ORDER BY x.sequence DESC LIMIT 2 RETURN x.sequence AS n",
        {"run": RUN, "number": 2},
    )
    assert [row[0] for row in rows.rows] == [4, 3]
