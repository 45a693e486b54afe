"""Reduced graphs in folders: those of a lake found, each run once, and their edges read in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.graph.reduced import GRAPH_FILE
from provenance_store.model.account import ACCOUNT_FILE, Account

BATCH_EDGES = 20_000


@dataclass(frozen=True, slots=True)
class Graph:
    """One run's reduced graph, which has as many edges as its account says."""

    folder: Path
    account: Account
    files: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path) -> "Graph":
        """The graph of a folder; InputError where it is not as it was written."""
        account = Account.read(folder)
        path = folder / GRAPH_FILE
        if not path.exists():
            raise InputError(f"{path} is missing, and its account is there: reduce the run again.")
        # Spark keeps its own notes beside the parts, under names that begin with one of these.
        parts = sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", ".")))
        files = (path,) if path.is_file() else tuple(parts)
        edges = sum(map(_count_edges, files))
        if edges != account.edges_out:
            raise InputError(
                f"{path} holds {edges:,} edges, and its account counts {account.edges_out:,}: it is not as it was "
                "written. Reduce the run again."
            )
        return cls(folder, account, files)

    def batches(self) -> Iterator[tuple[list[str], list[str]]]:
        """Outputs beside inputs, so many edges at a time."""
        for file in self.files:
            with pq.ParquetFile(file) as parquet:
                for rows in parquet.iter_batches(batch_size=BATCH_EDGES, columns=["output", "input"]):
                    outputs, inputs = (rows.column(name) for name in ("output", "input"))
                    if outputs.null_count or inputs.null_count:
                        raise InputError(f"{file} holds an edge without an end: both columns must be filled.")
                    yield outputs.to_pylist(), inputs.to_pylist()


@dataclass(frozen=True, slots=True)
class Found:
    """The newest graph of every run, in the order of run ids, and folders whose reduction has not finished."""

    graphs: list[Graph]
    unfinished: list[Path]


def find_graphs(folders: Sequence[Path]) -> Found:
    """The graphs in folders that `headwater reduce` wrote, or that hold such folders."""
    graphs: dict[str, Graph] = {}
    unfinished = []
    for folder in dict.fromkeys(path.resolve() for given in folders for path in _candidates(given)):
        if (folder / ACCOUNT_FILE).exists():
            graph = Graph.open(folder)
            run = graph.account.run
            graphs[run] = _newer(graphs[run], graph) if run in graphs else graph
        else:
            unfinished.append(folder)
    if not graphs:
        raise InputError(f"No reduced graph in {', '.join(map(str, folders))}. Run `headwater reduce` first.")
    return Found([graphs[run] for run in sorted(graphs)], unfinished)


def _candidates(given: Path) -> list[Path]:
    if not given.is_dir():
        raise InputError(f"{given} is no folder: name one that `headwater reduce` wrote, or one that holds several.")
    if (given / ACCOUNT_FILE).exists():
        return [given]
    return sorted(path for path in given.iterdir() if path.is_dir() and not path.name.startswith("."))


def _newer(one: Graph, other: Graph) -> Graph:
    if one.account.generation != other.account.generation:
        return max(one, other, key=lambda graph: graph.account.generation)
    # A copy says the same, but for how long it took.
    if msgspec.structs.replace(one.account, seconds=0) != msgspec.structs.replace(other.account, seconds=0):
        raise InputError(
            f"{one.folder} and {other.folder} are both generation {one.account.generation} of run "
            f"{one.account.run}, and differ: leave out the one that no longer holds."
        )
    return one


def _count_edges(file: Path) -> int:
    try:
        with pq.ParquetFile(file) as parquet:
            names, rows = parquet.schema_arrow.names, parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} cannot be read as Parquet: {error}") from None
    if missing := {"output", "input"} - set(names):
        raise InputError(f"{file} has no column {' and no column '.join(sorted(missing))}.")
    return int(rows)
