"""What a reducer of a stream keeps on disk: parts of tables that its workers wrote, and records of which parts count.

    batches/<number>.json    a record: the parts of one batch of the stream, written when all of them are
    parts/<name>/            a part: `messages`, `edges`, `names`, `rejected` and `times`, each a Parquet file where any
    forgotten.jsonl          the runs of which parts were taken away, and when
    steps/<number>/          of a stream that never ends: what the newest batch left to be carried on, and no parts
    scratch/                 what whoever contracts a run makes on the way

Whoever dies leaves parts that no record names; they never count, and are swept away at the next start. A batch is done
when it, or a later one, has a record, however often the stream hands it over again. So nothing is lost and nothing
counts twice.
"""

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import polars as pl

from provenance_store.model.files import write_whole
from provenance_store.reduction.schemas import MESSAGE_SCHEMA

MESSAGES, EDGES, NAMES, REJECTED, TIMES = "messages", "edges", "names", "rejected", "times"


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


class Forgotten(msgspec.Struct, frozen=True):
    """Of a run, as its parts name it, nothing is kept that was read up to a time, in milliseconds of the clock."""

    topic: str
    run: str | None
    at: int


class _Record(msgspec.Struct, frozen=True):
    parts: list[Part]


_FORGOTTEN = msgspec.json.Decoder(Forgotten)


class State:
    """The folder; one process at a time writes its records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches = folder / "batches"
        self._parts = folder / "parts"
        self._forgotten = folder / "forgotten.jsonl"

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
        forgotten = self.forgotten()
        self._rewrite(lambda part: part.read_at > forgotten.get((part.topic, part.run), -1))
        records = self._records()
        known = {part.name for parts in records.values() for part in parts}
        for path in self._parts.iterdir():
            if path.name not in known:
                shutil.rmtree(path)
        return records

    def record(self, batch: int, parts: Collection[Part]) -> None:
        """From here on the batch is done, with these parts and no others."""
        write_whole(self._batches / f"{batch}.json", msgspec.json.encode(_Record(list(parts))))

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

    def forget(self, parts: Collection[Part]) -> None:
        """Free the space of all parts of some runs, for ever. It is known afterwards that there were such runs."""
        known = self.forgotten()
        for part in parts:
            run = (part.topic, part.run)
            known[run] = max(known.get(run, part.read_at), part.read_at)
        lines = [msgspec.json.encode(Forgotten(*run, at)) for run, at in known.items()]
        write_whole(self._forgotten, b"\n".join(lines))
        names = {part.name for part in parts}
        self._rewrite(lambda part: part.name not in names)
        self.discard(parts)

    def forgotten(self) -> dict[tuple[str, str | None], int]:
        """The runs that parts were forgotten of, as parts name them, and up to when."""
        if not self._forgotten.exists():
            return {}
        lines = map(_FORGOTTEN.decode, self._forgotten.read_bytes().splitlines())
        return {(one.topic, one.run): one.at for one in lines}

    def _rewrite(self, keeps: Callable[[Part], bool]) -> None:
        """Leave parts out of the records. The newest record stays in any case: it tells how far the stream was read."""
        records = self._records()
        for batch, parts in records.items():
            kept = [part for part in parts if keeps(part)]
            if not kept and batch != max(records):
                (self._batches / f"{batch}.json").unlink()
            elif len(kept) < len(parts):
                self.record(batch, kept)

    def _records(self) -> dict[int, list[Part]]:
        return {
            int(path.stem): msgspec.json.decode(path.read_bytes(), type=_Record).parts
            for path in sorted(self._batches.glob("*.json"))
        }

    def discard(self, parts: Collection[Part]) -> None:
        """Take away parts that no record names."""
        for part in parts:
            shutil.rmtree(self._parts / part.name, ignore_errors=True)

    def remove(self) -> None:
        """Take all of it away, in one step: a state without its checkpoint would take new batches for done ones."""
        removed = self.folder.with_name(f"{self.folder.name}.removed")
        shutil.rmtree(removed, ignore_errors=True)
        self.folder.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


class Steps:
    """The steps of a stream that never ends. Of each batch's folder only the newest is kept: it holds all there is."""

    def __init__(self, state: State) -> None:
        self._folder = state.folder / "steps"

    def newest(self) -> tuple[int, Path] | None:
        """The last batch that is done, and its folder."""
        numbers = [int(path.name) for path in self._folder.glob("[0-9]*")]
        return (max(numbers), self._folder / str(max(numbers))) if numbers else None

    @contextmanager
    def write(self, batch: int) -> Iterator[Path]:
        """A folder to fill. When the block ends the batch is done, with what is in it; the one before goes."""
        unfinished = self._folder / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        yield unfinished
        unfinished.rename(self._folder / str(batch))
        for path in self._folder.iterdir():
            if path.name != str(batch):
                shutil.rmtree(path)
