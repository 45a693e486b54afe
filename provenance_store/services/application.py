"""Applications in processes of their own that tell what happens in JSON lines: how they are started and heard.

An application tells `{"progress": …}`, results under names of its own, or `{"error": …, "kind": …}`, which is raised
here as it was raised there. What it logs is worth showing only where it failed without saying why.
"""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import IO, Any

from provenance_store import errors
from provenance_store.errors import HeadwaterError, JobError
from provenance_store.services.service import Say

_LAST_LINES = 15


def tell(**line: Any) -> None:
    """In the application: tell whoever listens."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def tell_progress(progress: str) -> None:
    """In the application: tell how far it is."""
    tell(progress=progress)


class Stop:
    """In the application: whether someone has asked for its end, with SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self._asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "_asked", True))

    def __call__(self) -> bool:
        """Whether it was."""
        return self._asked


def tell_failure(do: Callable[[], None]) -> int:
    """In the application: do all of it; the exit status. An error of ours is told, so that it can be raised again."""
    try:
        do()
    except HeadwaterError as error:
        tell(error=str(error), kind=type(error).__name__)
        return 1
    return 0


def listen(
    command: Sequence[str],
    what: str,
    say: Say,
    environment: Mapping[str, str] | None = None,
    *,
    given: str = "",
    kept: IO[bytes] | None = None,
) -> Iterator[dict[str, Any]]:
    """Start the application and yield its results as they come; JobError where it ends badly without a word.

    What is `given` stands on its standard input, for what may not be seen among its arguments. What it logs is `kept`
    in a file of the caller's, where one is given. Whoever hears no more of it has it end, with SIGTERM.
    """
    with nullcontext(kept) if kept is not None else tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment)
        _give(process, given)
        error: HeadwaterError | None = None
        try:
            for line in process.stdout or ():
                told = _read_line(line)
                if "progress" in told:
                    say(told["progress"])
                elif "error" in told and "kind" in told:
                    error = _error(told)
                elif told:
                    yield told
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if error is not None:
            raise error
        if status != 0:
            raise JobError(f"{what} ended with status {status}. It said last:\n{_last_lines(log)}")


def _give(process: subprocess.Popen[bytes], given: str) -> None:
    # One that ended already says why in its own words.
    with suppress(BrokenPipeError), process.stdin or nullcontext() as stdin:
        if stdin is not None:
            stdin.write(given.encode())


def _read_line(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:  # a JVM may print what it likes
        return {}
    return told if isinstance(told, dict) else {}


def _error(told: dict[str, Any]) -> HeadwaterError:
    kind = getattr(errors, str(told.get("kind")), JobError)
    chosen = kind if isinstance(kind, type) and issubclass(kind, HeadwaterError) else JobError
    return chosen(told["error"])


def _last_lines(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
    return "\n".join(f"  {line}" for line in lines)
