"""Real services for integration tests: on free ports, in a temporary home, beside whatever else runs here.

Each fixture yields the `Settings` with which the library reaches its service. Jars come from the checkout's own folder.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from provenance_store.errors import PortTakenError
from provenance_store.services import lifecycle
from provenance_store.services.registry import services
from provenance_store.settings import (
    LOOPBACK,
    HadoopSettings,
    KafkaSettings,
    Neo4jSettings,
    ServiceSettings,
    Settings,
)

PORT_SETTINGS = [name for name in ServiceSettings.model_fields if name.endswith("_port")]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, each once."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]


def settings_for(home: Path) -> Settings:
    """Settings of a world of its own: nothing of the user's Kafka, Neo4j or Hadoop leaks in."""
    ports = dict(zip(PORT_SETTINGS, free_ports(len(PORT_SETTINGS)), strict=True))
    return Settings(
        home=home,
        lake=str(home / "lake"),
        kafka=KafkaSettings(),
        neo4j=Neo4jSettings(),
        hadoop=HadoopSettings(),
        services=ServiceSettings.model_validate({**ports, "start_timeout_seconds": 180}),
    )


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one whose new parent has not asked for its result yet has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def running(home: Path, *names: str) -> Iterator[Settings]:
    """The named services, until the block ends; nothing of them is left then."""
    settings = settings_for(home)
    try:
        try:
            _start(settings, names)
        except PortTakenError:  # someone was quicker on a port that was free a moment ago
            settings = settings_for(home)
            _start(settings, names)
        yield settings
    finally:
        for service in services(settings, names):
            lifecycle.down(service, print, purge_data=True)


def _start(settings: Settings, names: tuple[str, ...]) -> None:
    for service in services(settings, names):
        lifecycle.up(service, print)


@pytest.fixture(scope="session")
def kafka_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A broker for the whole test session."""
    with running(tmp_path_factory.mktemp("kafka-home"), "kafka") as settings:
        yield settings


@pytest.fixture(scope="session")
def neo4j_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A Neo4j for the whole test session."""
    with running(tmp_path_factory.mktemp("neo4j-home"), "neo4j") as settings:
        yield settings


@pytest.fixture(scope="session")
def hadoop_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A Hadoop cluster for the whole test session."""
    with running(tmp_path_factory.mktemp("hadoop-home"), "hadoop") as settings:
        yield settings
