"""Memory and processor time of all processes that this one has started, read from `/proc`."""

import os
import resource
import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN = 0.1
# Fields of /proc/PID/stat after the name, counted from the state: parent; user and system time, own and of children.
_PARENT, _TIMES = 1, slice(11, 15)


def processor_seconds() -> float:
    """What this process's children have used so far, those of theirs that ended too."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = sum(sum(map(int, stat[_TIMES])) for stat in _descendants().values()) / _TICKS
    return ended.ru_utime + ended.ru_stime + alive


class PeakMemory:
    """Watches, in a `with` block, how much memory all children hold together; `peak` is the most seen, in bytes."""

    def __init__(self) -> None:
        self.peak = 0
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
        while not self._ended.wait(_SECONDS_BETWEEN):
            self.peak = max(self.peak, sum(map(_resident, _descendants())))


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
