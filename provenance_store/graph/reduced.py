"""Reads a reduced graph from its folder, in batches that a transaction can hold."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from provenance_store.errors import IdError, InputError
from provenance_store.model.account import Account
from provenance_store.model.ids import LAKE_PREFIX, dataset_of

GRAPH_FILE = "graph.parquet"
BATCH_EDGES = 20_000
BATCH_BYTES = 8_000_000

Numbers: TypeAlias = npt.NDArray[np.int64]
Feeds: TypeAlias = Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring edges of a reduced graph: each end is a number into the records, which are distinct and sorted."""

    first: int
    records: list[str]
    # The datasets of the records, each once, and which of them each record belongs to.
    datasets: list[str | None]
    dataset_of: Numbers
    outputs: Numbers
    inputs: Numbers

    @classmethod
    def of(cls, first: int, edges: pa.Table) -> "Batch":
        """The edges of a table, of which the first is the graph's edge number `first`."""
        ends = pa.chunked_array([*edges.column("output").chunks, *edges.column("input").chunks], pa.large_string())
        encoded = ends.combine_chunks().dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        numbers = ranks[encoded.indices.to_numpy()]
        records = encoded.dictionary.take(order).to_pylist()
        datasets: dict[str | None, int] = {}
        dataset_of = np.array([datasets.setdefault(dataset_name(record), len(datasets)) for record in records])
        return cls(first, records, list(datasets), dataset_of, numbers[: edges.num_rows], numbers[edges.num_rows :])

    @property
    def end(self) -> int:
        """The number of the edge after its last."""
        return self.first + len(self.outputs)

    def beyond(self, edge: int) -> "Batch":
        """What of it is left when the edges before number `edge` are merged already."""
        merged = edge - self.first
        return replace(self, first=edge, outputs=self.outputs[merged:], inputs=self.inputs[merged:])

    def feeds(self) -> Feeds:
        """How many derivations lead from which dataset into which; ids outside the lake belong to none."""
        inputs, outputs = self.dataset_of[self._distinct()]
        pairs, counts = np.unique(inputs * len(self.datasets) + outputs, return_counts=True)
        feeds: Feeds = Counter()
        for pair, edges in zip(pairs.tolist(), counts.tolist(), strict=True):
            source, target = (self.datasets[number] for number in divmod(pair, len(self.datasets)))
            if source is not None and target is not None:
                feeds[source, target] = edges
        return feeds

    def parameters(self) -> dict[str, Any]:
        """What the statement that writes it takes: plain lists, which travel faster than maps.

        Edges are in the order of their inputs, which other runs share: merges that lock in one order seldom deadlock.
        """
        inputs, outputs = self._distinct()
        return {
            "records": self.records,
            "datasets": self.datasets,
            "dataset_of": self.dataset_of.tolist(),
            "outputs": outputs.tolist(),
            "inputs": inputs.tolist(),
        }

    def _distinct(self) -> Numbers:
        """Inputs over outputs of the edges, each edge once."""
        edges = np.unique(self.inputs * len(self.records) + self.outputs)
        return np.stack(np.divmod(edges, len(self.records)))


@dataclass(frozen=True, slots=True)
class ReducedGraph:
    """A folder that `headwater reduce` wrote: its account, its Parquet files, and what they hold."""

    account: Account
    files: tuple[Path, ...]
    edges: int
    digest: str = field(repr=False)

    @classmethod
    def open(cls, folder: Path) -> "ReducedGraph":
        """Check that the folder is a finished reduction, whole and with the two columns, before anything is merged."""
        account = Account.read(folder)
        files = _files(folder / GRAPH_FILE)
        digest = hashlib.blake2b(digest_size=16)
        edges = 0
        for file in files:
            try:
                with pq.ParquetFile(file) as parquet:
                    schema = parquet.schema_arrow
                    edges += parquet.metadata.num_rows
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{file} cannot be read as Parquet: {error}") from None
            if missing := {"output", "input"} - set(schema.names):
                raise InputError(f"{file} has no column {' and no column '.join(sorted(missing))}.")
            with file.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).digest())
        if edges != account.edges_out:
            raise InputError(
                f"{folder / GRAPH_FILE} holds {edges:,} edges, and its account counts {account.edges_out:,}: it is not "
                "as it was written. Reduce the run again."
            )
        return cls(account, files, edges, digest.hexdigest())

    def batches(self) -> Iterator[Batch]:
        """The edges in the files' order, bounded by number and by size; a single edge always fits."""
        first = 0
        for table in self._tables():
            for part in _bounded(table):
                yield Batch.of(first, part)
                first += part.num_rows

    def _tables(self) -> Iterator[pa.Table]:
        waiting = _EDGES.empty_table()
        for file in self.files:
            with pq.ParquetFile(file) as parquet:
                for rows in parquet.iter_batches(batch_size=BATCH_EDGES, columns=_EDGES.names):
                    if any(column.null_count for column in rows.columns):
                        raise InputError(f"{file} holds an edge without an end: both columns must be filled.")
                    waiting = pa.concat_tables([waiting, pa.table(rows).select(_EDGES.names).cast(_EDGES)])
                    while waiting.num_rows >= BATCH_EDGES:
                        yield waiting.slice(0, BATCH_EDGES)
                        waiting = waiting.slice(BATCH_EDGES)
        if waiting.num_rows:
            yield waiting


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


_EDGES = pa.schema([("output", pa.large_string()), ("input", pa.large_string())])


def _bounded(edges: pa.Table) -> Iterator[pa.Table]:
    sizes = sum(pc.binary_length(edges.column(name)).to_numpy() for name in _EDGES.names)
    ends = np.cumsum(sizes)
    begin = 0
    while begin < edges.num_rows:
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield edges.slice(begin, end - begin)
        begin = end


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise InputError(f"{path} is missing: the folder is not a reduced graph. Run `headwater reduce` first.")
    # Spark keeps its own notes beside the parts under names that begin with one of these.
    return tuple(sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", "."))))
