"""Memory and processor time of all processes that this one has started, read from `/proc`; and space on disk."""

import os
import resource
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, counted from the state: parent; user and system time, own and of children.
_PARENT, _TIMES, _OWN_TIMES = 1, slice(11, 15), slice(11, 13)
# Of the machine's in /proc/stat, those in which a core does nothing; guests' are in the users' already.
_IDLE, _ALL = slice(3, 5), slice(0, 8)


def processor_seconds() -> float:
    """What this process's children have used so far, those of theirs that ended too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = sum(sum(map(int, stat[_TIMES])) for stat in _descendants().values()) / _TICKS
    return ended.ru_utime + ended.ru_stime + alive


class _Peak:
    """Watches a measure in a `with` block; `peak` is the most seen, in bytes."""

    def __init__(self, measure: Callable[[], int], seconds_between: float) -> None:
        self.peak = 0
        self._measure = measure
        self._seconds_between = seconds_between
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._seconds_between):
            self.peak = max(self.peak, self._measure())


class PeakMemory(_Peak):
    """How much memory all children hold together."""

    def __init__(self) -> None:
        super().__init__(lambda: sum(map(_resident, _descendants())), 0.25)


class PeakDisk(_Peak):
    """How much fuller the disk of a folder gets."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        before = shutil.disk_usage(folder).used
        super().__init__(lambda: shutil.disk_usage(folder).used - before, 1.0)


class ByOthers:
    """What part of the machine's processor time goes to others in a `with` block: `share`, from 0 to 1.

    Others are all processes but this one, those below it, and those that are named. What another machine takes of the
    same cores is theirs too.
    """

    def __init__(self, *ours: int) -> None:
        self.share = 0.0
        self._named = (os.getpid(), *ours)
        self._before: dict[int, int] = {}
        self._ours: dict[int, int] = {}
        # Processes come and go: what one had used when it was last seen is what it used.
        self._watch = _Peak(self._look, 0.5)

    def __enter__(self) -> Self:
        self._look()
        self._before, self._machine = self._ours.copy(), _machine_ticks()
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)
        self._look()
        busy, passed = (now - before for now, before in zip(_machine_ticks(), self._machine, strict=True))
        ours = sum(ticks - self._before.get(process, 0) for process, ticks in self._ours.items())
        self.share = min(max(busy - ours, 0) / max(passed, 1), 1.0)

    def _look(self) -> int:
        stats = _descendants()
        for process in self._named:
            with suppress(OSError):  # it has ended
                stats[process] = _stat(process)
        for process, stat in stats.items():
            self._ours[process] = sum(map(int, stat[_OWN_TIMES]))
        return 0


def _machine_ticks() -> tuple[int, int]:
    """How long cores of this machine did something so far, and how long there were any."""
    ticks = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))[_ALL]
    return sum(ticks) - sum(ticks[_IDLE]), sum(ticks)


def _stat(process: int) -> list[str]:
    """The fields of `stat` behind the name, which may hold anything."""
    stat = Path(f"/proc/{process}/stat").read_text()
    return stat[stat.rindex(")") + 2 :].split()


def _descendants() -> dict[int, list[str]]:
    """The fields of `stat` of every process below this one."""
    stats: dict[int, list[str]] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = _stat(int(folder.name))
            except OSError:  # it has just ended
                continue
            stats[int(folder.name)] = fields
            children[int(fields[_PARENT])].append(int(folder.name))
    found: dict[int, list[str]] = {}
    pending = list(children[os.getpid()])
    while pending:
        process = pending.pop()
        found[process] = stats[process]
        pending.extend(children[process])
    return found


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except OSError:  # it has just ended
        return 0
