"""A topic whose run never ends is reduced while it flows, exactly, and from where it was left after a kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl
import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import InputError, JobError
from provenance_store.graph.reduced import ReducedGraph
from provenance_store.model.document import RelationName, write_document
from provenance_store.model.failpoints import VARIABLE
from provenance_store.model.message import Headers, Message
from provenance_store.reduction.unending import UnendingAccount
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport, open_producer
from spark_apps.reducer.unending import follow
from tests.integration.reducer.test_reducer import in_library

LENGTH, PERIOD = 60, 20.0


class Timed(NamedTuple):
    """A message, and how many seconds after the beginning it was sent."""

    message: Message
    seconds: float


def told(run: str, number: int, edges: list[tuple[RelationName, str, str]], seconds: float) -> Timed:
    return Timed(Message.of(Headers(run, "dic", f"a{number}", 0), write_document(run, edges)), seconds)


def flow(run: str, seed: int, *, lake: bool = True) -> list[Timed]:
    """Executions that use and make items told of in the last few seconds, and records; a little out of order."""
    chance = random.Random(seed)
    sent = []
    for now in range(LENGTH):
        items = [f"run:{now + n}" for n in range(5)]
        nodes = items + [f"lake:set/v1#{now + n}" for n in range(5)] if lake else items
        edges: list[tuple[RelationName, str, str]] = []
        for number in range(3):
            activity = f"run:f-{now}-{number}"
            edges += [("used", activity, node) for node in chance.sample(nodes, chance.randint(0, 3))]
            edges += [("wasGeneratedBy", node, activity) for node in chance.sample(nodes, chance.randint(0, 3))]
        sent.append(told(run, now, edges, now))
        sent += [sent[-1]] * chance.choice([0, 0, 0, 1])
    return sorted(sent, key=lambda one: one.seconds + chance.uniform(0, 3))


def word_that_time_has_passed(run: str, number: int) -> Timed:
    return told(run, number, [("wasDerivedFrom", "lake:end", "lake:begin")], LENGTH + 10 * PERIOD)


def send(settings: Settings, topic: str, messages: Sequence[Timed], begin: float, partition: int | None = None) -> None:
    KafkaTransport(settings).ensure_topics(topic)
    producer = open_producer(settings)
    chance = random.Random(1)
    for (headers, value), seconds in ((astuple(one.message), one.seconds) for one in messages):
        producer.send(
            topic,
            value=value,
            headers=[(name, text.encode()) for name, text in headers.items()],
            partition=chance.randrange(2) if partition is None else partition,
            timestamp_ms=round((begin + seconds) * 1000),
        )
    producer.flush()
    producer.close()


def astuple(message: Message) -> tuple[dict[str, str], bytes]:
    return dict(message.headers), message.value


def send_the_end(settings: Settings, topic: str, begin: float, run: str = "endless") -> list[Timed]:
    """To both partitions, as each holds the watermark back."""
    ends = [word_that_time_has_passed(run, LENGTH + partition) for partition in range(2)]
    for partition, end in enumerate(ends):
        send(settings, topic, [end], begin, partition)
    return ends


def graph(folder: Path) -> set[tuple[str, str]]:
    return set(pl.read_parquet(folder / "graph.parquet").iter_rows())


def account(folder: Path) -> UnendingAccount:
    return msgspec.json.decode((folder / "account.json").read_bytes(), type=UnendingAccount)


def expected(messages: Sequence[Timed]) -> set[tuple[str, str]]:
    ((_, reduced),) = in_library([one.message for one in messages]).items()
    assert reduced.graph.height > LENGTH
    return set(reduced.graph.iter_rows())


def smaller(settings: Settings, **reducer: int) -> Settings:
    return settings.model_copy(update={"reducer": settings.reducer.model_copy(update=reducer)})


class Until:
    """Stops a reducer when the account says that so many messages were read, or after a while."""

    def __init__(self, folder: Path, messages: int) -> None:
        self.folder = folder
        self.messages = messages
        self.deadline = time.monotonic() + 120

    def __call__(self) -> bool:
        assert time.monotonic() < self.deadline, [*self.folder.parent.rglob("*")]
        return (self.folder / "account.json").exists() and account(self.folder).messages >= self.messages


def test_a_run_without_end_is_reduced_while_it_flows(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    topic, run, begin = "unending.flow", tmp_path / "endless", time.time() - 3600
    settings = smaller(kafka_service, messages_per_batch=12)
    others = {*(settings.home / "reducer").glob("*")}
    sent = flow("endless", seed=1)
    orphan = told("endless", 900, [("wasDerivedFrom", "lake:set/v1#orphan", "run:never-made")], LENGTH)
    poison = Timed(Message({"run": "endless"}, b"?"), LENGTH)
    structure = told("structure", 0, [("wasDerivedFrom", "run:o", "run:i")], LENGTH)
    send(settings, topic, [*sent, orphan, poison, structure], begin)
    said: list[str] = []
    grown: list[Path] = []

    def go_on(messages: int) -> None:
        follow(
            spark_session,
            settings,
            topic=topic,
            out=tmp_path,
            period=PERIOD,
            stopped=Until(run, messages),
            finished=lambda folder, _: grown.append(folder),
            say=said.append,
        )

    go_on(len(sent) + 2)
    # Long before the end most is there; what was told in the last seconds is carried.
    early, before = graph(run), account(run)
    assert early < expected([*sent, orphan])
    assert len(early) > len(expected(sent)) // 2
    assert 0 < before.carried < before.edges_local
    assert (before.late, before.unmade, before.verdict, before.dic) == (0, before.unmade, "unknown", "dic")
    assert ReducedGraph.open(run).account.messages == before.messages
    ends = send_the_end(settings, topic, begin)
    go_on(len(sent) + 4)
    assert graph(run) == expected([*sent, orphan, *ends])
    after = account(run)
    assert (after.carried, after.late, after.rejected, after.refused) == (0, 0, 1, "")
    assert after.unmade > before.unmade
    # What is late is counted, and what it tells by itself is not lost.
    late = told("endless", 901, [("wasDerivedFrom", "lake:set/v1#late", "lake:set/v1#0")], 0)
    send(settings, topic, [late], begin)
    go_on(len(sent) + 5)
    assert graph(run) == expected([*sent, orphan, *ends, late])
    assert account(run).late == 1
    assert set(grown) == {run}
    # A run that names no record is not guessed at.
    assert graph(tmp_path / "structure") == set()
    assert "names no record" in account(tmp_path / "structure").refused
    assert [text for text in said if "run structure is not reduced" in text]
    [state] = (path for path in {*(settings.home / "reducer").iterdir()} - others if path.is_dir())
    assert len([*(state / "steps").iterdir()]) == 1
    assert not [*(state / "parts").iterdir()]
    with pytest.raises(InputError, match="not written by this reducer"):
        follow(
            spark_session,
            smaller(settings.model_copy(update={"home": tmp_path / "elsewhere"})),
            topic=topic,
            out=tmp_path,
            period=PERIOD,
            stopped=lambda: False,
            finished=lambda *_: None,
        )


def test_more_than_fits_is_told_and_a_shorter_period_helps(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    topic, begin = "unending.much", time.time() - 3600
    settings = smaller(kafka_service, messages_per_batch=5, edges_carried=60)
    sent = [
        told("much", n, [("wasDerivedFrom", f"run:{n}", "lake:i"), ("wasDerivedFrom", f"lake:o{n}", f"run:{n}")], n)
        for n in range(LENGTH)
    ]
    send(settings, topic, sent, begin)

    def go_on(period: float) -> None:
        follow(
            spark_session,
            settings,
            topic=topic,
            out=tmp_path,
            period=period,
            stopped=Until(tmp_path / "much", LENGTH),
            finished=lambda *_: None,
        )

    with pytest.raises(JobError, match="shorter --watermark"):
        go_on(1000)
    go_on(2)
    assert account(tmp_path / "much").messages == LENGTH
    assert len(graph(tmp_path / "much")) > LENGTH - 20


def test_killed_between_any_two_steps_it_gives_the_same(kafka_service: Settings, tmp_path: Path) -> None:
    topic, begin, run = "unending.killed", time.time() - 3600, tmp_path / "out" / "endless"
    sent = flow("endless", seed=2)
    send(kafka_service, topic, sent, begin)
    ends = send_the_end(kafka_service, topic, begin)
    environment = {
        **os.environ,
        "HEADWATER_KAFKA__BOOTSTRAP_SERVERS": kafka_service.bootstrap_servers,
        "HEADWATER_HOME": str(tmp_path / "home"),
        "HEADWATER_JVM": str(kafka_service.jvm),
        "HEADWATER_REDUCER__MESSAGES_PER_BATCH": "9",
    }
    command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topic}", f"--out={tmp_path / 'out'}", "--follow"]
    for moment in ("step written:1", "step kept:1", "batch recorded:2", ""):
        process = subprocess.Popen(
            [*command, f"--watermark={PERIOD}"],
            env={**environment, VARIABLE: moment},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        if moment:
            output, _ = process.communicate(timeout=200)
            assert process.returncode == -signal.SIGKILL, (moment, output)
            continue
        enough = Until(run, len(sent) + len(ends))
        for line in process.stdout:
            assert "error" not in json.loads(line), line
            if enough():
                process.send_signal(signal.SIGTERM)
                break
        process.communicate(timeout=100)
        assert process.returncode == 0
    assert graph(run) == expected([*sent, *ends])
    told_in_all = account(run)
    assert told_in_all.messages == len(sent) + len(ends)
    assert told_in_all.edges_out == ReducedGraph.open(run).edges
    assert (told_in_all.carried, told_in_all.late) == (0, 0)
