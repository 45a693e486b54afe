"""Kafka and Spark give what the library gives, for the same stream."""

import json
import random
import threading
import time
from pathlib import Path

import msgspec
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from provenance_store.cli.reduce import app
from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.model.document import RelationName, write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.port import Received
from spark_apps.reducer.app import run


def stream(name: str, *, lake: bool, seed: int, attempts: int = 3) -> list[Message]:
    """A run over a few entities, which therefore share, chain and cycle; some of it twice, and some unlisted."""
    chance = random.Random(seed)
    nodes = [f"run:{n}" for n in range(25)] + ([f"lake:set/v1#{n}" for n in range(25)] if lake else [])
    messages = []
    for attempt in range(attempts):
        for seq in range(3):
            edges: list[tuple[RelationName, str, str]] = []
            for number in range(5):
                activity = f"run:f-{attempt}-{seq}-{number}"
                edges += [("used", activity, chance.choice(nodes)) for _ in range(chance.randint(0, 3))]
                edges += [("wasGeneratedBy", chance.choice(nodes), activity) for _ in range(chance.randint(0, 3))]
            edges.append(("hadMember", chance.choice(nodes), chance.choice(nodes)))
            headers = Headers(name, "dic", f"a{attempt}", seq, task=f"t{attempt}")
            messages += [Message.of(headers, write_document(name, edges))] * chance.choice([1, 1, 2])
    return messages


def manifest(name: str, attempts: dict[str, int], generation: int = 0) -> Message:
    value = Manifest(attempts=attempts, generation=generation, marks=["limit"]).to_bytes()
    return Message.of(Headers(name, "dic", "", 0, kind=MANIFEST), value)


def send(settings: Settings, topic: str, messages: list[Message]) -> None:
    with KafkaTransport(settings).sink(topic) as sink:
        for message in messages:
            sink.send(message)


def in_library(messages: list[Message]) -> dict[str, Reduced]:
    return {one.run: one for one in reduce_messages(Received(message, 0, 0) for message in messages)}


def assert_same(folder: Path, account: Account, expected: Reduced) -> None:
    assert Account.read(folder) == account
    assert msgspec.structs.replace(account, seconds=0.0) == msgspec.structs.replace(expected.account, seconds=0.0)
    graph = folder / "graph.parquet"
    assert pl.read_parquet(graph).sort("input", "output").equals(expected.graph)
    assert pq.read_table(graph).num_rows == len(pd.read_parquet(graph)) == expected.graph.height
    assert {path.suffix for path in (graph.iterdir() if graph.is_dir() else [graph])} == {".parquet"}


def test_a_topic_of_many_runs_gives_what_the_library_gives(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    topic = "reducer.many"
    poison = Message({"run": "whole", "attempt": "a0", "seq": "0"}, b"\xff poison")
    messages = [
        *stream("whole", lake=True, seed=1),
        manifest("whole", {"a0": 9, "a9": 1}),
        manifest("whole", {"a0": 3, "a1": 3}, generation=1),
        *stream("structure", lake=False, seed=2, attempts=1)[:4],
        *[m for m in stream("partial", lake=True, seed=3) if (m.headers["attempt"], m.headers["seq"]) != ("a1", "1")],
        manifest("partial", {"a0": 3, "a1": 3}),
        manifest("nothing", {}),
        poison,
        Message({}, write_document("x", [("wasDerivedFrom", "run:o", "run:i")])),
        Message({}, b""),
    ]
    random.Random(4).shuffle(messages)
    send(kafka_service, topic, messages)
    expected = in_library(messages)
    accounts = run(spark_session, kafka_service, topic=topic, out=tmp_path)
    assert [folder.name for folder in accounts] == ["nothing", "partial", "structure", "unknown", "whole"]
    for folder, account in accounts.items():
        assert_same(folder, account, expected[folder.name])
    # Reducing again, into the same place, gives the same and sends no letter twice.
    accounts = run(spark_session, kafka_service, topic=topic, out=tmp_path / "whole", only="whole")
    assert_same(tmp_path / "whole", accounts[tmp_path / "whole"], expected["whole"])
    assert expected["partial"].account.missing == {"a1": [1]}
    assert expected["whole"].graph.height > 0
    assert expected["structure"].graph.height > 0
    with KafkaTransport(kafka_service).source(f"{topic}.rejected") as letters:
        received = [one.message for one in letters]
    assert sorted(message.value for message in received) == [b"", poison.value]
    assert all("not JSON" in message.headers["reason"] for message in received)
    assert [path for path in (kafka_service.home / "reducer").iterdir() if path.is_dir()] == []


def test_joins_on_workers_give_what_the_library_gives(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    """Large runs go this way: here every run does."""
    joining = kafka_service.model_copy(
        update={"reducer": kafka_service.reducer.model_copy(update={"edges_here": 0, "messages_per_batch": 7})}
    )
    topic = "reducer.joins"
    misnamed = write_document(
        "odd", [("used", "lake:set/v1#f", "lake:set/v1#1"), ("wasGeneratedBy", "lake:set/v1#2", "lake:set/v1#f")]
    )
    messages = [
        *stream("whole", lake=True, seed=11),
        manifest("whole", {"a0": 3, "a2": 3}),
        *stream("structure", lake=False, seed=12, attempts=1)[:3],
        Message({}, misnamed),
    ]
    send(joining, topic, messages)
    expected = in_library(messages)
    accounts = run(spark_session, joining, topic=topic, out=tmp_path)
    assert [folder.name for folder in accounts] == ["structure", "unknown", "whole"]
    for folder, account in accounts.items():
        assert_same(folder, account, expected[folder.name])
        assert expected[folder.name].graph.height > 0


def test_one_run_is_waited_for(kafka_service: Settings, spark_session: SparkSession, tmp_path: Path) -> None:
    topic = "reducer.late"
    messages = [*stream("late", lake=True, seed=5), *stream("other", lake=True, seed=6)]
    send(kafka_service, topic, messages)
    late = manifest("late", {"a0": 3, "a1": 3, "a2": 3})

    def send_late() -> None:
        time.sleep(2)
        send(kafka_service, topic, [late])

    thread = threading.Thread(target=send_late)
    thread.start()
    ((folder, account),) = run(spark_session, kafka_service, topic=topic, out=tmp_path, only="late", wait=120).items()
    thread.join()
    assert (folder, account.verdict) == (tmp_path, "complete")
    assert_same(folder, account, in_library([*messages, late])["late"])
    with pytest.raises(InputError, match=r"holds no run 'nope'. It holds: late, other"):
        run(spark_session, kafka_service, topic=topic, out=tmp_path, only="nope")


def test_a_topic_with_no_edge_and_one_with_no_message(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    send(kafka_service, "reducer.nothing", [manifest("r", {})])
    ((folder, account),) = run(spark_session, kafka_service, topic="reducer.nothing", out=tmp_path).items()
    assert_same(folder, account, in_library([manifest("r", {})])["r"])
    KafkaTransport(kafka_service).ensure_topics("reducer.empty")
    with pytest.raises(InputError, match="holds no message"):
        run(spark_session, kafka_service, topic="reducer.empty", out=tmp_path)


def test_the_command_reduces_a_topic_in_a_process_of_its_own(
    kafka_service: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_KAFKA__BOOTSTRAP_SERVERS", kafka_service.bootstrap_servers)
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADWATER_JVM", str(kafka_service.jvm))
    topic = "reducer.command"
    messages = [*stream("r", lake=True, seed=7), manifest("r", {"a0": 3, "a1": 3, "a2": 3})]
    send(kafka_service, topic, messages)
    done = CliRunner().invoke(app, [topic, "--out", str(tmp_path / "out"), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "account.json").read_text())
    assert_same(tmp_path / "out", Account.read(tmp_path / "out"), in_library(messages)["r"])
    failed = CliRunner().invoke(app, ["no.such.topic", "--out", str(tmp_path / "none")])
    assert isinstance(failed.exception, InputError)
    assert "no topic 'no.such.topic'" in str(failed.exception)
