"""Applications that go on beside whoever started them and leave word in a folder, for callers that do not wait.

`start` returns at once. A keeper process listens to the application, and whoever sees the folder, on this machine or
another, can tell how it is: `log` holds what it says, and `log.1` what it said before, `beat` is touched while it goes
on, `outcome.json` tells how it ended, and a file `stop` asks it to end.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from provenance_store import errors
from provenance_store.errors import HeadwaterError, JobError
from provenance_store.model.files import in_turn, write_whole
from provenance_store.model.ids import check_run
from provenance_store.services.application import listen

_OUTCOME, _BEAT, _STOP, _LOG, _LOCK = "outcome.json", "beat", "stop", "log", "lock"
_SECONDS_BETWEEN_BEATS = 1.0
# A machine may be busy; one that has been silent for so long has gone.
_SILENT_SECONDS = 60.0
# What goes on for months says much: so many bytes of it are kept, and as many before them.
_MOST_LOGGED = 10 << 20


class Outcome(msgspec.Struct, frozen=True):
    """How an application ended: with what it told, or with an error of a kind."""

    told: list[dict[str, Any]] = []
    error: str | None = None
    kind: str = "JobError"

    def check(self) -> list[dict[str, Any]]:
        """What it told; an error is raised here as it was raised there."""
        if self.error is None:
            return self.told
        kind = getattr(errors, self.kind, JobError)
        raise (kind if isinstance(kind, type) and issubclass(kind, HeadwaterError) else JobError)(self.error)


def start(command: Sequence[str], what: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Start the application, or leave it alone where it goes on already; what an earlier one left is forgotten."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with in_turn(folder / _LOCK, wait=False):
            for name in (_OUTCOME, _STOP):
                (folder / name).unlink(missing_ok=True)
            (folder / _BEAT).touch()
    except BlockingIOError:
        return
    with (folder / _LOG).open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "provenance_store.services.beside", str(folder), what, *command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stream_folder(home: Path, run: str) -> Path:
    """Where the job of a stream query's run leaves word."""
    return home.absolute() / "runs" / check_run(run) / "stream"


def following_folder(home: Path) -> Path:
    """Where what takes live provenance into the lake graph leaves word."""
    return home.absolute() / "following"


def outcome_of(folder: Path) -> Outcome | None:
    """How it ended; None while it goes on. One that went without a word has failed."""
    try:
        return msgspec.json.decode((folder / _OUTCOME).read_bytes(), type=Outcome)
    except FileNotFoundError:
        pass
    beat = folder / _BEAT
    if beat.exists() and time.time() - beat.stat().st_mtime < _SILENT_SECONDS:
        return None
    return Outcome(
        error=f"What was started in {folder} went without a word: start it again. Its log is {folder / _LOG}."
    )


def ask_to_stop(folder: Path) -> None:
    """Ask it to end, wherever it runs."""
    if folder.is_dir():
        (folder / _STOP).touch()


def main(arguments: Sequence[str]) -> int:
    """In the keeper: run the application to its end, and leave word; the exit status."""
    folder, what, *command = arguments
    signal.signal(signal.SIGTERM, _be_stopped)
    try:
        with in_turn(Path(folder) / _LOCK, wait=False):
            outcome = _keep(Path(folder), what, command)
    except BlockingIOError:  # another was quicker
        return 0
    return 0 if outcome.error is None else 1


def _keep(folder: Path, what: str, command: Sequence[str]) -> Outcome:
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(folder, over), daemon=True)
    beating.start()
    try:
        outcome = _run(folder, what, command)
    finally:
        over.set()
        beating.join()
    write_whole(folder / _OUTCOME, msgspec.json.encode(outcome))
    return outcome


def _run(folder: Path, what: str, command: Sequence[str]) -> Outcome:
    with (folder / _LOG).open("a+b") as log:

        def say(sentence: str) -> None:
            log.write(f"{sentence}\n".encode())
            log.flush()

        try:
            return Outcome(list(listen(command, what, say, kept=log)))
        except HeadwaterError as error:
            return Outcome(error=str(error), kind=type(error).__name__)


def _beat(folder: Path, over: threading.Event) -> None:
    while not over.wait(_SECONDS_BETWEEN_BEATS):
        (folder / _BEAT).touch()
        _keep_short(folder / _LOG)
        if (folder / _STOP).exists():
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _keep_short(log: Path) -> None:
    """All who write to it append, so it can be emptied under their hands."""
    if log.stat().st_size > _MOST_LOGGED:
        shutil.copyfile(log, log.with_name(f"{_LOG}.1"))
        os.truncate(log, 0)


def _be_stopped(*_: object) -> None:
    raise JobError("It was asked to stop before its end.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
