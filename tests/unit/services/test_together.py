import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.services_fixtures import free_ports

LONG = f"{sys.executable} -c 'import time; time.sleep(600)'"
TOGETHER = [sys.executable, "-m", "provenance_store.services.together"]


def start(*commands: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*TOGETHER, *commands], stderr=subprocess.PIPE)


def children_of(process: subprocess.Popen[bytes], count: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 30
    while len(found := psutil.Process(process.pid).children()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_where_one_ends_all_end(tmp_path: Path) -> None:
    said = tmp_path / "said"
    process = start(LONG, f"""{sys.executable} -c 'open("{said}", "w").close(); raise SystemExit(3)'""")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.exists()
    assert b"ended with status 3, so all are ended." in told


def test_those_behind_a_port_wait_until_it_answers(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    said = tmp_path / "said"
    write = f'{sys.executable} -c \'open("{said}", "w").close(); raise SystemExit(4)\''
    process = start(LONG, f"@{port}", write)
    (only,) = children_of(process, 1)
    assert not said.exists()
    with socket.create_server(("127.0.0.1", port)):
        _, told = process.communicate(timeout=60)
    assert said.exists()
    assert b"ended with status 4" in told
    assert not only.is_running()


def test_asked_to_end_it_ends_all() -> None:
    process = start(LONG, LONG)
    parts = children_of(process, 2)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not [part for part in parts if part.is_running()]


def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(600)\n")
    impatient = "import sys; from provenance_store.services import together as t; t._SECONDS_TO_END = 0.5; "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{impatient}sys.exit(t.main(sys.argv[1:]))", f"{sys.executable} {deaf}"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.readline()
    (part,) = children_of(process, 1)
    process.terminate()
    process.communicate(timeout=60)
    assert not part.is_running()
