"""`python -m provenance_store.services.together COMMAND…`: several processes that live and end as one.

Each COMMAND is one word to the shell and many to the process. They stay in this process's group; where one ends, all
end, and so they do when this one is asked to. `@PORT` among them has those behind it wait until that port answers.
"""

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from provenance_store.services.ports import accepts

_PORT = "@"
_SECONDS_BETWEEN_LOOKS = 0.2
# Airflow's scheduler waits for what it runs; whoever stops the group kills what is left after longer.
_SECONDS_TO_END = 20.0


def main(commands: Sequence[str]) -> int:
    """Run all of them; the exit status: 0 where the end was asked for, 1 where one ended by itself."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    waiting = list(commands)
    with _ended_together() as processes:
        while not asked:
            while waiting and _may_start(waiting[0]):
                command = waiting.pop(0)
                if not command.startswith(_PORT):
                    processes.append((command, subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL)))
            for command, process in processes:
                if (status := process.poll()) is not None:
                    sys.stderr.write(f"{command} ended with status {status}, so all are ended.\n")
                    return 1
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return 0


def _may_start(command: str) -> bool:
    return not command.startswith(_PORT) or accepts(int(command.removeprefix(_PORT)))


@contextmanager
def _ended_together() -> Iterator[list[tuple[str, subprocess.Popen[bytes]]]]:
    processes: list[tuple[str, subprocess.Popen[bytes]]] = []
    try:
        yield processes
    finally:
        _end([process for _, process in processes])


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _SECONDS_TO_END
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    for process in processes:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
