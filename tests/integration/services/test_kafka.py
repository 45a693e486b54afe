import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from provenance_store.errors import PortTakenError
from provenance_store.services import lifecycle
from provenance_store.services.kafka import Kafka
from provenance_store.services.service import State
from provenance_store.settings import Settings
from tests.services_fixtures import is_gone, settings_for

Headwater = Callable[..., subprocess.CompletedProcess[str]]


def create_topic(settings: Settings, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()


def send(settings: Settings, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers, acks="all", max_request_size=4_000_000)
    try:
        producer.send(topic, value).get(timeout=30)
    finally:
        producer.close()


def read(settings: Settings, topic: str) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=settings.bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
        group_id=None,
    )
    try:
        return [next(consumer).value]
    finally:
        consumer.close()


def test_large_messages_pass_and_unknown_topics_are_not_made(kafka_service: Settings) -> None:
    create_topic(kafka_service, "large")
    send(kafka_service, "large", b"x" * 1_900_000)
    with pytest.raises(KafkaError):
        send(kafka_service, "large", b"x" * 2_200_000)
    admin = KafkaAdminClient(bootstrap_servers=kafka_service.bootstrap_servers)
    assert "unknown" not in admin.list_topics()
    admin.close()


def test_kill_9_then_up_keeps_messages(kafka_service: Settings) -> None:
    create_topic(kafka_service, "kept")
    send(kafka_service, "kept", b"still here")
    service = Kafka(kafka_service)
    before = lifecycle.status(service)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while lifecycle.status(service).state is not State.STALE:
        assert time.monotonic() < deadline
    after = lifecycle.up(service, print)
    assert after.state is State.RUNNING
    assert after.pid != before.pid
    assert read(kafka_service, "kept") == [b"still here"]


@pytest.fixture
def headwater(tmp_path: Path) -> Iterator[Headwater]:
    """The command line on a world of its own, beside the session's broker."""
    chosen = settings_for(tmp_path / "home")
    ports = {f"HEADWATER_SERVICES__{k.upper()}": str(v) for k, v in chosen.services.model_dump().items()}
    environment = {**os.environ, "HEADWATER_HOME": str(chosen.home), **ports}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from provenance_store.cli.services import app; app()", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)

    call.settings = chosen  # type: ignore[attr-defined]
    yield call
    call("down", "--purge-data")


def test_two_processes_at_once_beside_another_instance(headwater: Headwater, kafka_service: Settings) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: headwater("up", "kafka", "--json"), range(2)))
    assert [done.returncode for done in both] == [0, 0], both
    first, second = (json.loads(done.stdout)[0] for done in both)
    assert first == second
    assert first["state"] == "running"
    assert psutil.Process(first["pid"]).ppid() != os.getpid()  # the command that started it is gone
    assert json.loads(headwater("up", "kafka", "--json").stdout)[0] == first

    mine: Settings = headwater.settings  # type: ignore[attr-defined]
    assert lifecycle.status(Kafka(kafka_service)).state is State.RUNNING
    create_topic(mine, "only-here")
    admin = KafkaAdminClient(bootstrap_servers=kafka_service.bootstrap_servers)
    assert "only-here" not in admin.list_topics()
    admin.close()

    assert headwater("down", "kafka").stdout.split()[:2] == ["kafka", "stopped"]
    assert is_gone(first["pid"])
    data = mine.home / "services" / "kafka" / "data"
    assert (data / "only-here-0").is_dir()
    headwater("down", "kafka", "--purge-data")
    assert [path.name for path in (mine.home / "services" / "kafka").iterdir()] == ["lock"]


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    port = settings.services.kafka_controller_port
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(PortTakenError, match=rf"port {port} .*KAFKA_CONTROLLER_PORT"),
    ):
        lifecycle.up(Kafka(settings), print)
