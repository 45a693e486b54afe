"""What a reducer of a stream keeps on disk: parts of tables that its workers wrote, and records of which parts count.

    batches/<number>.json    a record: the parts of one batch of the stream, written when all of them are
    parts/<name>/            a part: `messages`, `edges`, `names` and `rejected`, each a Parquet file where there is any
    scratch/                 what whoever contracts a run makes on the way

Whoever dies leaves parts that no record names; they never count, and are swept away at the next start. A batch that has
a record is done, however often the stream hands it over again. So nothing is lost and nothing counts twice.
"""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import polars as pl

from provenance_store.reduction.schemas import MESSAGE_SCHEMA

MESSAGES, EDGES, NAMES, REJECTED = "messages", "edges", "names", "rejected"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one task made of the messages of one run in one batch; `run` is null where they do not tell theirs."""

    name: str
    topic: str
    run: str | None
    partition: int
    messages: int
    bytes: int
    edges_in: int
    edges: int
    manifests: int
    rejected: int
    # Whether an activity's id is in the lake's namespace, which only a join can set right.
    misnamed: bool
    # When the last message was sent, and when the batch was begun to be read; in milliseconds of the clock.
    told_at: int
    read_at: int


class _Record(msgspec.Struct, frozen=True):
    parts: list[Part]


class State:
    """The folder; one process at a time writes its records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches = folder / "batches"
        self._parts = folder / "parts"

    @property
    def checkpoint(self) -> Path:
        """Where the stream keeps how far it has read."""
        return self.folder / "checkpoint"

    @property
    def scratch(self) -> Path:
        """Where whoever contracts a run keeps what it makes on the way."""
        return self.folder / "scratch"

    def open(self) -> dict[int, list[Part]]:
        """The parts that count, by their batches; all others are swept away."""
        for folder in (self._batches, self._parts):
            folder.mkdir(parents=True, exist_ok=True)
        records = {
            int(path.stem): msgspec.json.decode(path.read_bytes(), type=_Record).parts
            for path in sorted(self._batches.glob("*.json"))
        }
        known = {part.name for parts in records.values() for part in parts}
        for path in self._parts.iterdir():
            if path.name not in known:
                shutil.rmtree(path)
        return records

    def record(self, batch: int, parts: Collection[Part]) -> None:
        """From here on the batch is done, with these parts and no others."""
        unfinished = self._batches / f"{batch}.unfinished"
        unfinished.write_bytes(msgspec.json.encode(_Record(list(parts))))
        unfinished.replace(self._batches / f"{batch}.json")

    def table(self, part: str, table: str) -> Path:
        """Where a table of a part is."""
        return self._parts / part / f"{table}.parquet"

    def tables(self, parts: Collection[Part], table: str) -> list[Path]:
        """The files of a table of several parts, as far as they have it."""
        return [path for part in parts if (path := self.table(part.name, table)).exists()]

    def read_messages(self, parts: Collection[Part]) -> pl.DataFrame:
        """The rows of all messages of these parts."""
        read = [pl.read_parquet(path) for path in self.tables(parts, MESSAGES)]
        return pl.concat([pl.DataFrame(schema=MESSAGE_SCHEMA), *read])

    def read_rejected(self, parts: Collection[Part]) -> Iterator[dict[str, object]]:
        """The messages of these parts that could not be read, as they came."""
        for path in self.tables(parts, REJECTED):
            yield from pl.read_parquet(path).iter_rows(named=True)

    def forget(self, batches: Collection[int]) -> None:
        """Free the space of batches of which nothing is needed any more; their records stay, without parts."""
        for batch in batches:
            path = self._batches / f"{batch}.json"
            names = [part.name for part in msgspec.json.decode(path.read_bytes(), type=_Record).parts]
            self.record(batch, [])
            for name in names:
                shutil.rmtree(self._parts / name, ignore_errors=True)

    def remove(self) -> None:
        """Take all of it away, in one step: a state without its checkpoint would take new batches for done ones."""
        removed = self.folder.with_name(f"{self.folder.name}.removed")
        shutil.rmtree(removed, ignore_errors=True)
        self.folder.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)
