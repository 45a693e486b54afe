"""Reads a reduced graph from its folder, in batches that a transaction can hold."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import IdError, InputError
from provenance_store.model.account import Account
from provenance_store.model.ids import LAKE_PREFIX, dataset_of

GRAPH_FILE = "graph.parquet"
BATCH_EDGES = 10_000
BATCH_CHARACTERS = 4_000_000

Edge: TypeAlias = tuple[str, str]
# One output, its dataset, and its inputs with theirs.
Row: TypeAlias = tuple[str, str | None, list[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class ReducedGraph:
    """A folder that `headwater reduce` wrote: its account, its Parquet files, and what they hold."""

    account: Account
    files: tuple[Path, ...]
    edges: int
    digest: str = field(repr=False)

    @classmethod
    def open(cls, folder: Path) -> "ReducedGraph":
        """Check that the folder is a finished reduction with the two columns, before anything is merged."""
        account = Account.read(folder)
        files = _files(folder / GRAPH_FILE)
        digest = hashlib.blake2b(digest_size=16)
        edges = 0
        for file in files:
            try:
                with pq.ParquetFile(file) as parquet:
                    missing = {"output", "input"} - set(parquet.schema_arrow.names)
                    edges += parquet.metadata.num_rows
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{file} cannot be read as Parquet: {error}") from None
            if missing:
                raise InputError(f"{file} has no column {' and no column '.join(sorted(missing))}.")
            with file.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).digest())
        return cls(account, files, edges, digest.hexdigest())

    def batches(self) -> Iterator[list[Edge]]:
        """The edges in the files' order, bounded by number and by size."""
        return bounded(self._edges(), BATCH_EDGES, BATCH_CHARACTERS)

    def _edges(self) -> Iterator[Edge]:
        for file in self.files:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=BATCH_EDGES, columns=["output", "input"]):
                    if batch.column("output").null_count or batch.column("input").null_count:
                        raise InputError(f"{file} holds an edge without an end: both columns must be filled.")
                    yield from zip(batch.column("output").to_pylist(), batch.column("input").to_pylist(), strict=True)


def bounded(edges: Iterable[Edge], most: int, most_characters: int) -> Iterator[list[Edge]]:
    """Cut a stream of edges into lists that are neither too long nor too large; a single edge always fits."""
    batch: list[Edge] = []
    characters = 0
    for edge in edges:
        size = len(edge[0]) + len(edge[1])
        if batch and (len(batch) >= most or characters + size > most_characters):
            yield batch
            batch, characters = [], 0
        batch.append(edge)
        characters += size
    if batch:
        yield batch


def group(edges: Iterable[Edge]) -> list[Row]:
    """One row per output with its inputs, in the order of ids: merges that lock in one order seldom deadlock."""
    inputs: dict[str, set[str]] = {}
    for output, source in edges:
        inputs.setdefault(output, set()).add(source)
    return [
        (output, dataset_name(output), [(source, dataset_name(source)) for source in sorted(inputs[output])])
        for output in sorted(inputs)
    ]


def count_feeds(edges: Iterable[Edge], feeds: Counter[tuple[str, str]]) -> None:
    """Add up how many derivations lead from which dataset into which; ids outside the lake belong to none."""
    for output, source in edges:
        target, origin = dataset_name(output), dataset_name(source)
        if target is not None and origin is not None:
            feeds[origin, target] += 1


def dataset_name(record: str) -> str | None:
    """The dataset of a record, or None for an id that names none, which a run without `lake:` ids has."""
    if not record.startswith(LAKE_PREFIX):
        return None
    return _dataset_of_place(record.partition("/")[0].partition("#")[0])


@lru_cache(maxsize=4096)
def _dataset_of_place(place: str) -> str | None:
    try:
        name = dataset_of(place)
    except IdError:
        return None
    try:
        name.encode()
    except UnicodeEncodeError:
        # A name in bytes that are not UTF-8 cannot be stored as text: it stays as it stands in the id.
        return place.removeprefix(LAKE_PREFIX)
    return name


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise InputError(f"{path} is missing: the folder is not a reduced graph. Run `headwater reduce` first.")
    # Spark keeps its own notes beside the parts under names that begin with one of these.
    return tuple(sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", "."))))
