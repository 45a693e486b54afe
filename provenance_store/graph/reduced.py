"""A reduced graph in its folder, as `headwater reduce` wrote it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import IdError, InputError
from provenance_store.model.account import Account
from provenance_store.model.ids import LAKE_PREFIX, dataset_of

GRAPH_FILE = "graph.parquet"
_MANY = 20_000
EDGES = pa.schema([("output", pa.large_string()), ("input", pa.large_string())])


@dataclass(frozen=True, slots=True)
class ReducedGraph:
    """Its account and its Parquet files, which hold as many edges as the account says."""

    folder: Path
    account: Account
    files: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path) -> "ReducedGraph":
        """Check that the folder is a finished reduction, whole and with the two columns, before anything is read."""
        account = Account.read(folder)
        files = _files(folder / GRAPH_FILE)
        edges = sum(map(_count_edges, files))
        if edges != account.edges_out:
            raise InputError(
                f"{folder / GRAPH_FILE} holds {edges:,} edges, and its account counts {account.edges_out:,}: it is not "
                "as it was written. Reduce the run again."
            )
        return cls(folder, account, files)

    @property
    def edges(self) -> int:
        """How many there are."""
        return self.account.edges_out

    def digest(self) -> str:
        """What tells this graph from any other."""
        digest = hashlib.blake2b(digest_size=16)
        for file in self.files:
            with file.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).digest())
        return digest.hexdigest()

    def rows(self, most: int) -> Iterator[pa.RecordBatch]:
        """Columns output and input, up to so many edges at a time."""
        for file in self.files:
            with pq.ParquetFile(file) as parquet:
                for rows in parquet.iter_batches(batch_size=most, columns=EDGES.names):
                    if any(column.null_count for column in rows.columns):
                        raise InputError(f"{file} holds an edge without an end: both columns must be filled.")
                    yield rows

    def pairs(self) -> Iterator[tuple[list[str], list[str]]]:
        """Outputs beside inputs, many edges at a time."""
        for rows in self.rows(_MANY):
            yield rows.column("output").to_pylist(), rows.column("input").to_pylist()


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


def _count_edges(file: Path) -> int:
    try:
        with pq.ParquetFile(file) as parquet:
            names, rows = parquet.schema_arrow.names, parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} cannot be read as Parquet: {error}") from None
    if missing := set(EDGES.names) - set(names):
        raise InputError(f"{file} has no column {' and no column '.join(sorted(missing))}.")
    return int(rows)


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise InputError(f"{path} is missing: the folder is not a reduced graph. Run `headwater reduce` first.")
    # Spark keeps its own notes beside the parts under names that begin with one of these.
    return tuple(sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", "."))))
