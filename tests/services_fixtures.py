"""Real services for integration tests: on free ports, in a temporary home, beside whatever else runs here.

Each fixture yields the `Settings` with which the library reaches its service. Jars come from the checkout's own folder.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyarrow.fs as pafs
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
from provenance_store.storage.paths import RemotePath, parse

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
        services=ServiceSettings.model_validate({**ports, "start_timeout_seconds": 300}),
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


@pytest.fixture(scope="session")
def hdfs_root(hadoop_service: Settings) -> Path:
    """A folder of a real HDFS, by the address that a user would give."""
    namenode = f"{LOOPBACK}:{hadoop_service.services.hadoop_namenode_port}"
    return Settings(lake=f"hdfs://{namenode}/lakes", services=hadoop_service.services).lake


S3_KEYS = {"AWS_ACCESS_KEY_ID": "lake", "AWS_SECRET_ACCESS_KEY": "of-the-tests", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def s3_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """SeaweedFS, a real store that speaks S3, on loopback, and the variables by which its clients find it."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "data").mkdir()
    allowed = {"accessKey": S3_KEYS["AWS_ACCESS_KEY_ID"], "secretKey": S3_KEYS["AWS_SECRET_ACCESS_KEY"]}
    identity = {"name": "lake", "credentials": [allowed], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    names = [f"{part}.{port}" for part in ("master", "volume", "filer", "s3") for port in ("port", "port.grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    told = {
        "dir": folder / "data",
        "ip": LOOPBACK,
        "ip.bind": LOOPBACK,
        "filer": "true",
        "s3": "true",
        "s3.config": folder / "s3.json",
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.iam": "false",
        # Nothing is told to anyone.
        "master.telemetry": "false",
        "master.volumeSizeLimitMB": 64,
        "volume.max": 20,
        **ports,
    }
    program = [str(Path(sys.executable).with_name("weed")), "-logtostderr=true", "server"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*program, *(f"-{key}={value}" for key, value in told.items())], stdout=log, stderr=log
        )
    try:
        endpoint = f"{LOOPBACK}:{ports['s3.port']}"
        _make_bucket(server, endpoint, folder / "log")
        yield {**S3_KEYS, "AWS_ENDPOINT_URL": f"http://{endpoint}"}
    finally:
        # It would take its time to end in order, and nothing of it is kept.
        server.kill()
        server.wait()


def _make_bucket(server: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    """The first request that succeeds tells that all parts of the server are up."""
    keys = {"access_key": S3_KEYS["AWS_ACCESS_KEY_ID"], "secret_key": S3_KEYS["AWS_SECRET_ACCESS_KEY"]}
    client = pafs.S3FileSystem(scheme="http", endpoint_override=endpoint, allow_bucket_creation=True, **keys)
    deadline = time.monotonic() + 120
    while True:
        try:
            client.create_dir("lakes/first")
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        else:
            return


@pytest.fixture(scope="session")
def s3_root(s3_environment: dict[str, str]) -> Iterator[RemotePath]:
    """A bucket of it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_environment.items():
            patch.setenv(name, value)
        root = parse("s3://lakes/in/here")
        assert root is not None
        yield root
