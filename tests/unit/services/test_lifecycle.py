import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from provenance_store.errors import PortTakenError, ServiceError
from provenance_store.services import lifecycle, process
from provenance_store.services.ports import accepts
from provenance_store.services.service import Launch, Say, Service, State
from provenance_store.settings import ServiceSettings, Settings

SERVER = """
import socket, sys, time
print("hello from the server", flush=True)
if sys.argv[1] == "dies":
    sys.exit("no luck today")
if sys.argv[1] == "hangs":
    time.sleep(60)
server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True:
    server.accept()[0].close()
"""


class Toy(Service):
    name = "toy"
    stop_timeout_seconds = 5.0
    manner = "serves"

    @property
    def ports(self) -> Mapping[str, int]:
        return {"kafka_port": self.settings.services.kafka_port}

    @property
    def secrets(self) -> Sequence[Path]:
        return (self.settings.home / "secrets" / "toy",)

    def prepare(self, say: Say) -> None:
        say("preparing")
        (self.data / "kept").write_text("kept")

    def launch(self) -> Launch:
        return Launch([sys.executable, "-c", SERVER, self.manner, str(self.ports["kafka_port"])], cwd=self.folder)

    def answers(self) -> bool:
        return accepts(self.ports["kafka_port"])


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Toy]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        chosen = ServiceSettings(kafka_port=probe.getsockname()[1], start_timeout_seconds=10)
    service = Toy(Settings(home=tmp_path / "home", services=chosen))
    yield service
    lifecycle.down(service, print)


def test_up_twice_then_down_twice(toy: Toy) -> None:
    said: list[str] = []
    assert lifecycle.status(toy).state is State.STOPPED
    assert not toy.folder.exists()
    first = lifecycle.up(toy, said.append)
    assert (first.state, first.address) == (State.RUNNING, toy.address)
    assert first.since is not None
    count = len(said)
    assert lifecycle.up(toy, said.append) == first
    assert len(said) == count
    assert lifecycle.status(toy) == first
    for _ in range(2):
        assert lifecycle.down(toy, said.append).state is State.STOPPED
        assert first.pid is not None
        assert not psutil.pid_exists(first.pid)
    assert (toy.data / "kept").exists()
    assert toy.log_file.read_text() == "hello from the server\n"


def test_a_crash_is_seen_as_stale_and_up_starts_anew(toy: Toy) -> None:
    first = lifecycle.up(toy, print)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    while lifecycle.status(toy).state is not State.STALE:
        time.sleep(0.02)
    second = lifecycle.up(toy, print)
    assert second.state is State.RUNNING
    assert second.pid != first.pid


def test_a_pid_file_of_another_process_is_stale_and_that_one_survives(toy: Toy) -> None:
    me = process.identify(os.getpid())
    assert me is not None
    toy.folder.mkdir(parents=True)
    process.write_pid_file(toy.pid_file, type(me)(pid=me.pid, started=me.started - 1, boot=me.boot))
    assert lifecycle.status(toy).state is State.STALE
    lifecycle.down(toy, print)
    assert lifecycle.status(toy).state is State.STOPPED


def test_a_process_that_stops_answering_says_so_and_can_be_stopped(toy: Toy) -> None:
    toy.manner = "hangs"
    toy.data.mkdir(parents=True)
    toy.logs.mkdir()
    identity = process.spawn(toy.launch(), toy.log_file)
    process.write_pid_file(toy.pid_file, identity)
    assert lifecycle.status(toy).state is State.NOT_ANSWERING
    lifecycle.down(toy, print)
    assert not process.is_alive(identity)


def test_dying_while_starting_quotes_the_log(toy: Toy) -> None:
    toy.manner = "dies"
    with pytest.raises(ServiceError) as caught:
        lifecycle.up(toy, print)
    for part in ("toy ended while it was starting", str(toy.log_file), "no luck today"):
        assert part in str(caught.value)
    assert lifecycle.status(toy).state is State.STOPPED


def test_never_answering_is_given_up_and_leaves_no_process(toy: Toy) -> None:
    toy.manner = "hangs"
    chosen = toy.settings.services.model_copy(update={"start_timeout_seconds": 0.5})
    toy.settings = toy.settings.model_copy(update={"services": chosen})
    with pytest.raises(ServiceError, match=r"did not answer on .* within"):
        lifecycle.up(toy, print)
    assert lifecycle.status(toy).state is State.STOPPED
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(toy.ports["kafka_port"]) in (p.info["cmdline"] or [])
    ]


def test_a_taken_port_is_refused_before_anything_is_started(toy: Toy) -> None:
    with socket.create_server(("127.0.0.1", toy.ports["kafka_port"])), pytest.raises(PortTakenError):
        lifecycle.up(toy, print)
    assert not toy.pid_file.exists()
    assert not toy.log_file.exists()


def test_purge_removes_data_logs_and_secrets_of_this_service_only(toy: Toy) -> None:
    others = [toy.settings.home / "secrets" / "hmac-key", toy.settings.home / "services" / "other" / "data"]
    for path in (*others, *toy.secrets):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    lifecycle.up(toy, print)
    lifecycle.down(toy, print, purge_data=True)
    assert list(toy.folder.iterdir()) == [toy.lock_file]
    assert not toy.secrets[0].exists()
    assert all(path.exists() for path in others)


def test_purge_never_leaves_home(toy: Toy, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    toy.folder.parent.mkdir(parents=True)
    toy.folder.symlink_to(outside)
    with pytest.raises(ServiceError, match="outside"):
        lifecycle.down(toy, print, purge_data=True)
    assert (outside / "precious").exists()
    toy.folder.unlink()
    toy.folder.mkdir()
    toy.data.symlink_to(outside)
    lifecycle.down(toy, print, purge_data=True)
    assert (outside / "precious").exists()
    assert not toy.data.is_symlink()
