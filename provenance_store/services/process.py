"""Processes that outlive us, and telling them from others that got the same pid."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from provenance_store.errors import ServiceError
from provenance_store.services.service import Identity, Launch

PROC = Path("/proc")
_ENDED = {"Z", "X", "x"}
_children: dict[int, subprocess.Popen[bytes]] = {}  # started by this very process, which must reap them


@dataclass(frozen=True)
class _Stat:
    state: str
    group: int
    terminal: int
    threads: int
    started: int

    @property
    def has_ended(self) -> bool:
        """A zombie keeps its entry in /proc; while other threads of it are ending it still holds ports and locks."""
        return self.state in _ENDED and self.threads <= 1


def _stat(pid: int) -> _Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the command's name before it may hold anything
    group, terminal, threads, started = (int(fields[place]) for place in (2, 4, 17, 19))
    return _Stat(fields[0], group, terminal, threads, started)


def identify(pid: int) -> Identity | None:
    """The identity of a living process, `None` where there is none."""
    if not (PROC / "self" / "stat").exists():
        raise ServiceError("Local services need Linux (/proc). Elsewhere run infra/compose.yaml with Docker.")
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
    stat = _stat(pid)
    if stat is None or stat.has_ended:
        return None
    return Identity(pid=pid, started=stat.started, boot=(PROC / "sys/kernel/random/boot_id").read_text().strip())


def is_alive(identity: Identity) -> bool:
    """Whether exactly this process still runs."""
    return identify(identity.pid) == identity


def started_at(identity: Identity) -> str:
    """When the process was started, as ISO time in UTC."""
    lines = (PROC / "stat").read_text().splitlines()
    # Not the age taken from the clock: that differs by milliseconds, at times across a second, from call to call.
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    started = booted + identity.started / os.sysconf("SC_CLK_TCK")
    return datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds")


def write_pid_file(path: Path, identity: Identity) -> None:
    """Remember the process; a reader sees the whole file or none."""
    mine = path.with_name(f".{path.name}.{os.getpid()}")
    mine.write_text(json.dumps(asdict(identity)) + "\n")
    mine.replace(path)


def read_pid_file(path: Path) -> Identity | None:
    """The process remembered in `path`; `None` where there is no file or it cannot be understood."""
    try:
        return Identity(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def spawn(launch: Launch, log_file: Path) -> Identity:
    """Start the process in a session of its own, so that it outlives the terminal; its output goes to `log_file`."""
    # What Headwater is told through its environment, passwords too, is not the service's business.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEADWATER_")} | dict(launch.environment)
    with log_file.open("ab") as log:
        child = subprocess.Popen(
            list(launch.argv),
            cwd=launch.cwd,
            env=environment,
            stdin=subprocess.DEVNULL if launch.stdin is None else subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[child.pid] = child
    if child.stdin is not None:
        with suppress(BrokenPipeError), child.stdin:  # when it died at once, its log tells why
            child.stdin.write((launch.stdin or "").encode())
    identity = identify(child.pid)
    if identity is None:
        raise ServiceError(f"{launch.argv[0]} ended as soon as it was started. See {log_file}.")
    return identity


def group_of(leader: Identity) -> list[Identity]:
    """The leader and all that it started in its own process group; nobody where the leader has ended."""
    members = [identify(pid) for pid in pids() if (stat := _stat(pid)) is not None and stat.group == leader.pid]
    # Asked last: while the leader lives, its pid names no other group.
    return [member for member in members if member is not None] if is_alive(leader) else []


def working_in(folder: Path) -> list[Identity]:
    """Who works in a folder of ours; not people, who have a terminal.

    Variables would tell the same, but a process that gives itself a title writes over them.
    """
    found = []
    for pid in pids():
        with suppress(OSError):  # it ended meanwhile, or it is another user's
            stat = _stat(pid)
            works_here = (PROC / str(pid) / "cwd").readlink() == folder.resolve()
            if works_here and stat is not None and not stat.terminal and (identity := identify(pid)) is not None:
                found.append(identity)
    return found


def pids() -> Iterator[int]:
    """Every process of this machine."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def end(processes: Iterable[Identity], *, timeout_seconds: float) -> None:
    """End exactly these processes: asked first, killed after the timeout. A pid that was given away is not touched."""
    everyone = list(processes)
    _signal(everyone, signal.SIGTERM)
    if _wait_gone(everyone, timeout_seconds):
        return
    _signal(everyone, signal.SIGKILL)
    if not _wait_gone(everyone, timeout_seconds):
        left = ", ".join(str(one.pid) for one in everyone if is_alive(one))
        raise ServiceError(f"These processes do not end even when killed: {left}. Look at them with `ps -fp`.")


def _signal(processes: Iterable[Identity], number: signal.Signals) -> None:
    for one in processes:
        if is_alive(one):
            with suppress(ProcessLookupError):
                os.kill(one.pid, number)


def _wait_gone(processes: Iterable[Identity], timeout_seconds: float) -> bool:
    waiting = list(processes)
    deadline = time.monotonic() + timeout_seconds
    while waiting := [one for one in waiting if is_alive(one)]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
