import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from provenance_store.services import process
from provenance_store.services.service import Identity, Launch

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def python(code: str, cwd: Path, **more: str) -> Launch:
    return Launch(argv=[sys.executable, "-c", code], cwd=cwd, stdin=more.get("stdin"))


def wait_for_text(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "the process wrote nothing"
        time.sleep(0.02)
    return path.read_text()


def test_a_living_process_is_recognised_and_agrees_with_psutil() -> None:
    me = process.identify(os.getpid())
    assert me is not None
    assert process.is_alive(me)
    told = datetime.fromisoformat(process.started_at(me))
    assert abs((told - datetime.fromtimestamp(psutil.Process().create_time(), UTC)).total_seconds()) < 3


@pytest.mark.parametrize("change", [{"started": 1}, {"boot": "another boot"}])
def test_a_recycled_pid_is_neither_taken_for_ours_nor_killed(change: dict[str, object]) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        real = process.identify(bystander.pid)
        assert real is not None
        ours_once = replace(real, **change)  # type: ignore[arg-type]
        assert not process.is_alive(ours_once)
        process.end([ours_once], timeout_seconds=1)
        assert process.group_of(ours_once) == []
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_ended_process_is_not_alive_even_as_a_zombie() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
    assert process.identify(child.pid) is None
    child.wait()
    assert process.identify(child.pid) is None


def test_pid_file_round_trip_and_garbage(tmp_path: Path) -> None:
    file, identity = tmp_path / "pid", Identity(pid=7, started=8, boot="b")
    assert process.read_pid_file(file) is None
    process.write_pid_file(file, identity)
    assert process.read_pid_file(file) == identity
    assert list(tmp_path.iterdir()) == [file]
    for garbage in ("", "123", "[1]", '{"pid": 1}', "{"):
        file.write_text(garbage)
        assert process.read_pid_file(file) is None


def test_spawn_detaches_and_hands_over_stdin_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_NEO4J__PASSWORD", "from-the-environment")
    code = "import os, sys, time; print(sys.stdin.read(), os.getsid(0) == os.getpid(), flush=True); time.sleep(60)"
    launch = python(code, tmp_path, stdin="a-secret")
    assert "a-secret" not in repr(launch)
    identity = process.spawn(launch, tmp_path / "log")
    try:
        assert wait_for_text(tmp_path / "log") == "a-secret True\n"
        assert "from-the-environment" not in str(psutil.Process(identity.pid).environ())
        assert "a-secret" not in str(psutil.Process(identity.pid).cmdline())
    finally:
        process.end([identity], timeout_seconds=10)
    assert not psutil.pid_exists(identity.pid)


def test_end_kills_what_does_not_listen_and_its_children(tmp_path: Path) -> None:
    identity = process.spawn(python(STUBBORN, tmp_path), tmp_path / "log")
    child = int(wait_for_text(tmp_path / "log"))
    group = process.group_of(identity)
    assert {one.pid for one in group} == {identity.pid, child}
    process.end(group, timeout_seconds=0.5)
    assert process.identify(child) is None
    assert not process.is_alive(identity)


def test_a_killed_child_of_ours_is_noticed_at_once(tmp_path: Path) -> None:
    identity = process.spawn(python("import time; time.sleep(60)", tmp_path), tmp_path / "log")
    os.kill(identity.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while process.is_alive(identity):
        assert time.monotonic() < deadline
