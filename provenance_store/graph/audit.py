"""Who asked what of the lake graph: a log that is only ever added to, one file a day under `<home>/audit`.

A line is JSON and ends in a hash of itself, and holds the hash of the line before it, also over the end of a day. So a
line that was altered, put in or taken out shows, unless everything after it was written anew; against that, keep the
last hash that `headwater audit --verify` tells elsewhere. A line is added under a lock and by one write, so processes
do not disturb each other.
"""

import errno
import json
import os
import pwd
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from provenance_store.errors import AuditError
from provenance_store.model.files import in_turn
from provenance_store.settings import Settings

_END = re.compile(rb',"hash":"([0-9a-f]{64})"}\n')
_BLOCK = 4096
T = TypeVar("T")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One question: what was asked, by whom, and how it ended."""

    at: datetime
    # The name that was given for who asks, and the user that the process runs as.
    who: str
    user: str
    kind: str
    asked: dict[str, Any]
    ended: dict[str, Any]
    seconds: float
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What a look at the whole log found."""

    entries: int
    faults: list[str]
    # The hash before the first line, where older days were put away.
    begins_after: str | None
    last: str | None


class Audit:
    """The log of one home; `keep` asks a question and writes it down."""

    def __init__(self, settings: Settings, who: str | None = None) -> None:
        self._folder = settings.home.absolute() / "audit"
        self._enabled = settings.audit.enabled
        self._user = _user()
        self._who = who or settings.audit.who or self._user

    def keep(
        self, kind: str, asked: Mapping[str, Any], ask: Callable[[], T], ending: Callable[[T], Mapping[str, Any]]
    ) -> T:
        """What `ask` returns, once it is written down that it was asked for and how it ended."""
        if not self._enabled:
            return ask()
        with self._refusals(), self._locked():
            pass  # what cannot be written down is not even begun
        at, began = datetime.now(UTC), time.perf_counter()

        def write(ended: Mapping[str, Any]) -> None:
            seconds = round(time.perf_counter() - began, 6)
            entry = Entry(
                at=at, who=self._who, user=self._user, kind=kind, asked=dict(asked), ended=dict(ended), seconds=seconds
            )
            self._append(entry)

        try:
            result = ask()
        except BaseException as error:
            write({"error": type(error).__name__})
            raise
        write(ending(result))
        return result

    def entries(self, *, since: datetime | None = None, who: str | None = None) -> Iterator[Entry]:
        """What was asked, the oldest first; a line that cannot be read is an error, not left out."""
        for file in self._files():
            if since is None or file.stem >= since.astimezone(UTC).date().isoformat():
                for number, line in enumerate(file.open("rb"), start=1):
                    entry = _read(line)
                    if entry is None:
                        raise AuditError(
                            f"Line {number} of {file} is not as it was written: `headwater audit --verify`."
                        )
                    if (since is None or entry.at >= since) and who in {None, entry.who, entry.user}:
                        yield entry

    def check(self) -> Checked:
        """Follow the hashes from the first line to the last."""
        faults: list[str] = []
        entries, begins_after, last = 0, None, None
        for file in self._files():
            for number, line in enumerate(file.open("rb"), start=1):
                entry = _read(line)
                if entry is None:
                    faults.append(f"{file}, line {number}: altered, or cut off while it was written")
                    continue
                if not entries:
                    begins_after = entry.previous
                elif entry.previous != last:
                    faults.append(f"{file}, line {number}: something was put in or taken out before it")
                entries, last = entries + 1, _END.findall(line)[0].decode()
        return Checked(entries, faults, begins_after, last)

    def _files(self) -> list[Path]:
        return [self._folder / name for name in self._days()]

    def _days(self) -> list[str]:
        # As plain names: they are listed at every question, and may be thousands.
        names = os.listdir(self._folder) if self._folder.is_dir() else []  # noqa: PTH208
        return sorted(name for name in names if name.endswith(".jsonl"))

    def _append(self, entry: Entry) -> None:
        with self._refusals(), self._locked():
            days = self._days()
            # A clock that is set back must not bring the days out of order.
            today = max([f"{datetime.now(UTC).date()}.jsonl", *days[-1:]])
            hashes = (_last_hash(self._folder / day) for day in reversed(days))
            previous = next(filter(None, hashes), None)
            _write(self._folder / today, _line(msgspec.structs.replace(entry, previous=previous)))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AuditError(
                f"Refused: who asks what is kept in {self._folder}, and that cannot be written ({error.strerror}). "
                "Mend that, or turn the audit log off with HEADWATER_AUDIT__ENABLED=false."
            ) from error

    def _locked(self) -> AbstractContextManager[None]:
        return in_turn(self._folder / ".lock")


def _line(entry: Entry) -> bytes:
    # In ASCII: what a user typed need not be text that UTF-8 can hold.
    body = json.dumps(msgspec.to_builtins(entry), separators=(",", ":")).encode("ascii")
    return body[:-1] + f',"hash":"{sha256(body).hexdigest()}"}}\n'.encode()


def _read(line: bytes) -> Entry | None:
    end = _END.search(line)
    if end is None or end.end() != len(line):
        return None
    body = line[: end.start()] + b"}"
    if sha256(body).hexdigest().encode() != end[1]:
        return None
    try:
        return msgspec.convert(json.loads(body), Entry)
    except ValueError:
        return None


def _last_hash(path: Path) -> str | None:
    """The hash of the last whole line, if there is any."""
    with path.open("rb") as file:
        for begin in (max(0, file.seek(0, os.SEEK_END) - _BLOCK), 0):
            file.seek(begin)
            # JSON has no line feed within, so this ends a line wherever it stands.
            if hashes := _END.findall(file.read()):
                return str(hashes[-1], "ascii")
    return None


def _write(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line  # behind what someone left who was killed while writing
        if os.write(descriptor, line) != len(line):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def _user() -> str:
    # Not from the environment, which anyone may set.
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
