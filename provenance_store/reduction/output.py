"""Reduced graphs on disk: `graph.parquet`, `rejected.jsonl` where anything was rejected, and `account.json` last."""

import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote

import msgspec

from provenance_store.errors import IdError, InputError
from provenance_store.model.account import ACCOUNT_FILE, Account
from provenance_store.model.ids import check_run
from provenance_store.model.message import Message
from provenance_store.reduction.exact import Reduced, Rejected
from provenance_store.transport.recording import encode_line

GRAPH = "graph.parquet"
REJECTED = "rejected.jsonl"
_LONGEST_NAME = 200


class OfRun(Protocol):
    """Anything that belongs to a run."""

    @property
    def run(self) -> str:
        """The run's id."""


T = TypeVar("T", bound=OfRun)


def choose_runs(found: Sequence[T], source: str, run: str | None) -> list[T]:
    """All that was found, or the one run asked for; InputError where there is none."""
    if not found:
        raise InputError(f"{source} holds no message, so there is nothing to reduce.")
    chosen = [one for one in found if run is None or one.run == run]
    if not chosen:
        raise InputError(f"{source} holds no run {run!r}. It holds: {', '.join(one.run for one in found)}.")
    return chosen


def folder_of(out: Path, run: str, *, alone: bool) -> Path:
    """Where a run is written: in `out` itself where it is the only one, else in a folder of its name."""
    return out if alone else out / _folder_name(run)


def prepare_folder(folder: Path) -> None:
    """Make the folder, or empty it of an earlier reduction; without its account that is at once unfinished."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written to: {error.strerror}.") from error
    (folder / ACCOUNT_FILE).unlink(missing_ok=True)
    (folder / REJECTED).unlink(missing_ok=True)
    graph = folder / GRAPH
    if graph.is_dir():
        shutil.rmtree(graph)
    else:
        graph.unlink(missing_ok=True)


def prepare(out: Path, runs: Sequence[str]) -> dict[str, Path]:
    """A folder for each run, emptied; nothing that stood in `out` passes for the result any more."""
    prepare_folder(out)
    folders = {run: folder_of(out, run, alone=len(runs) == 1) for run in runs}
    for folder in folders.values():
        prepare_folder(folder)
    return folders


def write(out: Path, reduced: Sequence[Reduced]) -> dict[Path, Account]:
    """Write each run; the folders with their accounts, as they were written."""
    folders = prepare(out, [one.run for one in reduced])
    return {folders[one.run]: _write_run(folders[one.run], one) for one in reduced}


def encode_rejected(rejected: Rejected) -> bytes:
    """A line of `rejected.jsonl`: the line of a recording, with the reason before it."""
    line = encode_line(Message(rejected.message.headers, rejected.message.value))
    return b'{"reason":' + msgspec.json.encode(rejected.reason) + b"," + line.removeprefix(b"{")


def _write_run(folder: Path, reduced: Reduced) -> Account:
    started = time.monotonic()
    if reduced.rejected:
        (folder / REJECTED).write_bytes(b"".join(map(encode_rejected, reduced.rejected)))
    reduced.graph.write_parquet(folder / GRAPH)
    seconds = round(reduced.account.seconds + time.monotonic() - started, 3)
    account = msgspec.structs.replace(reduced.account, seconds=seconds)
    account.write(folder)
    return account


def _folder_name(run: str) -> str:
    try:
        return check_run(run)
    except IdError:
        # A dot would be safe only inside a name; all of it encoded leaves nothing to mistake.
        name = quote(run, safe="").replace(".", "%2E")
    if len(name) > _LONGEST_NAME:
        # No file system takes it; what is cut off is told apart by a digest.
        name = f"{name[:100]}%{hashlib.sha256(run.encode()).hexdigest()}"
    return name
