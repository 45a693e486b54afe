"""A running query killed with -9 and begun again: results, assertions and live provenance are as if nothing had been.

One run is killed when a worker has written a step that Spark has not committed, then as a whole at a random moment, and
then goes on to its end. It runs in lanes over several tasks; its segments are published as it goes.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from provenance_store.lake.layout import new_version, version_of
from provenance_store.lake.records import read_line
from provenance_store.model.failpoints import VARIABLE
from provenance_store.settings import Settings
from provenance_store.streams.examples import EXAMPLES
from provenance_store.streams.live import Edge, Element, SinkVertex
from provenance_store.streams.live_messages import read_message, topic_of
from provenance_store.streams.runs import StreamRun
from provenance_store.transport.kafka import KafkaTransport
from tests.live_checks import assert_told_once_in_order, in_order
from tests.stream_examples import Found, as_told
from tests.stream_oracles import ORACLES

RUN = "killed-1"
EXAMPLE = EXAMPLES["vehicle-tracking"]
EVENTS, FILES = 600, 6


def start(settings: Settings, query: Path, failpoint: str = "") -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "HEADWATER_KAFKA__BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "HEADWATER_HOME": str(settings.home),
        "HEADWATER_LAKE": str(settings.lake),
        "HEADWATER_JVM": str(settings.jvm),
        "HEADWATER_STREAMS__BUCKETS": "3",
        VARIABLE: failpoint,
    }
    command = [sys.executable, "-m", "spark_apps.streams", f"--query={query}", f"--run={RUN}"]
    command += ["--batch=1", "--live=exact", "--period=60000"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )


def kill_after_a_commit(settings: Settings, process: "subprocess.Popen[bytes]") -> None:
    """The whole of it, at a random moment after it has come somewhere."""
    commits = settings.home / "streams" / RUN / "checkpoint" / "commits"
    before = len(list(commits.glob("[0-9]*")))
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline and len(list(commits.glob("[0-9]*"))) <= before:
        time.sleep(0.05)
    time.sleep(random.Random().uniform(0, 2))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return list(EXAMPLE.events(EVENTS, 7, 9))


@pytest.fixture(scope="module")
def world(
    kafka_service: Settings, tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
) -> tuple[Settings, dict[str, int], list[Element]]:
    """The run's home and lake after all kills, the number of each source event by its id, and what was told live."""
    home = tmp_path_factory.mktemp("killed")
    settings = kafka_service.model_copy(update={"home": home, "lake": home / "lake"})
    (source,) = EXAMPLE.query.sources
    numbers: dict[str, int] = {}
    with new_version(version_of(settings.lake, source.dataset, "v1"), {}) as folder:
        for file in range(FILES):
            at, name = 0, f"part-{file}.jsonl"
            with (folder / name).open("wb") as out:
                for number in range(file * EVENTS // FILES, (file + 1) * EVENTS // FILES):
                    numbers[f"lake:{source.dataset}/v1/{name}#{at}"] = number
                    at += out.write(json.dumps(events[number]).encode() + b"\n")
            os.utime(folder / name, (file, file))  # Spark takes the oldest first, and of one moment any
    query = home / "query.json"
    query.write_bytes(EXAMPLE.query.to_json())
    dying = start(settings, query, "step landed:3")
    assert dying.wait(timeout=300) != 0
    kill_after_a_commit(settings, start(settings, query))
    told, _ = (last := start(settings, query)).communicate(timeout=400)
    assert last.returncode == 0, told
    received = KafkaTransport(settings).source(topic_of(EXAMPLE.query.name))
    messages = [read_message(one.message) for one in received]
    return settings, numbers, list(in_order(messages))


def results(lake: Path, numbers: dict[str, int], edges: list[tuple[str, str | None]]) -> Found:
    streams = {sink.dataset: sink.stream for sink in EXAMPLE.query.sinks}
    behind: dict[str, set[int]] = {}
    for result, source in edges:
        behind.setdefault(result, set()).update([numbers[source]] if source else [])
    found: dict[str, list[tuple[Any, frozenset[int]]]] = {stream: [] for stream in streams.values()}
    for result, sources in behind.items():
        dataset = result.removeprefix("lake:").partition("/")[0]
        found[streams[dataset]].append((json.loads(read_line(lake, result))["content"], frozenset(sources)))
    return as_told(found)


def test_live_provenance_is_told_once_in_order_and_is_what_brute_force_says(
    world: tuple[Settings, dict[str, int], list[Element]], events: list[dict[str, Any]]
) -> None:
    settings, numbers, elements = world
    assert_told_once_in_order(elements)
    vertices = [(one.id, None) for one in elements if isinstance(one, SinkVertex)]
    edges = [(one.output, one.input) for one in elements if isinstance(one, Edge)]
    expected = as_told(ORACLES[EXAMPLE.name](events))
    assert sum(map(sum, (Counter(one).values() for one in expected.values()))) > 10
    assert results(settings.lake, numbers, [*vertices, *edges]) == expected


def test_results_are_there_once_in_segments_and_are_traced_to_the_same(
    world: tuple[Settings, dict[str, int], list[Element]], events: list[dict[str, Any]]
) -> None:
    settings, numbers, _ = world
    run = StreamRun(settings.lake, RUN)
    assert run.facts.is_finished
    assert run.facts.late == 0
    ids = run.results()["id"].to_list()
    assert len({one.split("/")[1] for one in ids}) > 2
    links = run.backward(ids, replayed=True)
    assert all(links.exact)
    pairs = zip(links.outputs, links.inputs, strict=True)
    expected = as_told(ORACLES[EXAMPLE.name](events))
    assert results(settings.lake, numbers, [*((one, None) for one in ids), *pairs]) == expected
    # What stands in the lake is what the assertions tell of, and nothing twice.
    lines = sum(
        file.read_bytes().count(b"\n")
        for sink in EXAMPLE.query.sinks
        for file in (settings.lake / sink.dataset).rglob("part-*.jsonl")
    )
    assert lines == len(ids)
