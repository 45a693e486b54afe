"""Memory and processor time of all processes that this one has started, read from `/proc`; and space on disk."""

import os
import resource
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, counted from the state: parent; user and system time, own and of children.
_PARENT, _TIMES = 1, slice(11, 15)


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
        super().__init__(lambda: sum(map(_resident, _descendants())), 0.1)


class PeakDisk(_Peak):
    """How much fuller the disk of a folder gets."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        before = shutil.disk_usage(folder).used
        super().__init__(lambda: shutil.disk_usage(folder).used - before, 1.0)


def _descendants() -> dict[int, list[str]]:
    """The fields of `stat` of every process below this one."""
    stats: dict[int, list[str]] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:  # it has just ended
                continue
            fields = stat[stat.rindex(")") + 2 :].split()
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
