"""A run's parts contracted in groups by the workers, each by itself, before what is left is joined.

The steps are the library's `private`; here is who does them, and what lies on disk in between:

    counted.npy            the messages that count, where not all do
    surveys/<group>.arrow  what each group speaks of
    shared/<range>.arrow   which items are shared, and by which groups
    links/<group>.parquet  the edges that are left
    outputs/               the names of the records that they begin at

Each task reads and writes files of its own and hands on a number, so no edge passes through the driver.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import SparkContext

from provenance_store.reduction.schemas import HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.state import EDGES, NAMES, Part, State

# So many edges a group: few enough for a task's memory, many enough to have items to itself.
_EDGES_A_GROUP = 2_500_000

_SURVEYS, _SHARED = "surveys", "shared"
_RESULTS = _LINKS, _OUTPUTS = "links", "outputs"

T = TypeVar("T")


@dataclass(frozen=True)
class Contracted:
    """What the groups came to: the files of their tables, and what was counted on the way."""

    links: list[Path]
    outputs: list[Path]
    edges: int
    unmade: int


def contract_groups(
    spark: SparkContext, state: State, parts: Sequence[Part], counted: pl.Series | None, folder: Path
) -> Contracted:
    """Contract the parts of a run, in a folder for what lies in between; `counted` are the messages, where not all."""
    for name in (_SURVEYS, _SHARED, *_RESULTS):
        (folder / name).mkdir(parents=True)
    if counted is not None:
        np.save(folder / "counted.npy", counted.sort().to_numpy())
    groups = _group(parts)
    task = _Task(state.folder.absolute(), folder.absolute(), tuple(tuple(group) for group in groups))
    numbers = range(len(groups))
    edges = sum(_on_workers(spark, task.survey, numbers))
    unmade = sum(_on_workers(spark, task.compare, numbers))
    _on_workers(spark, task.contract, numbers)
    links, outputs = ([task.file(table, number) for number in numbers] for table in _RESULTS)
    return Contracted(links, outputs, edges, unmade)


def _group(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts in groups: neighbours in their Kafka partition, which is where a task tells what it does."""
    groups: list[list[Part]] = []
    partition, edges = -1, 0
    for part in sorted(parts, key=lambda part: part.partition):
        if not groups or part.partition != partition or edges + part.edges > _EDGES_A_GROUP:
            groups.append([])
            partition, edges = part.partition, 0
        groups[-1].append(part)
        edges += part.edges
    return groups


def _on_workers(spark: SparkContext, task: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
    return spark.parallelize(numbers, max(1, len(numbers))).map(task).collect()


@dataclass(frozen=True)
class _Task:
    """What a worker does for a group or a range, of which there are equally many."""

    state: Path
    folder: Path
    groups: tuple[tuple[Part, ...], ...]

    def file(self, table: str, number: int) -> Path:
        suffix = "parquet" if table in _RESULTS else "arrow"
        return self.folder / table / f"{number}.{suffix}"

    def survey(self, group: int) -> int:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from provenance_store.reduction.private import survey  # noqa: PLC0415 - takes a second to import

        edges = self._read_edges(group)
        survey(edges).write_ipc(self.file(_SURVEYS, group))
        return edges.height

    def compare(self, number: int) -> int:
        from provenance_store.reduction.private import compare, cut  # noqa: PLC0415

        surveys = [_look_into(self.file(_SURVEYS, group)) for group in range(len(self.groups))]
        comparison = compare([one[cut(one["item"], number, len(self.groups))] for one in surveys])
        comparison.shared.write_ipc(self.file(_SHARED, number))
        return comparison.unmade

    def contract(self, group: int) -> int:
        from provenance_store.reduction.private import contract_group  # noqa: PLC0415

        links = contract_group(self._read_edges(group), self._read_shared(group))
        self._write(links, _LINKS, group)
        begins = links.select(hi="dependent_hi", lo="dependent_lo").filter(pl.col("lo") & 1 == 1)
        self._write(self._read_names(group).join(begins, on=["hi", "lo"], how="semi"), _OUTPUTS, group)
        return links.height

    def _write(self, table: pl.DataFrame, name: str, group: int) -> None:
        table.write_parquet(self.file(name, group), compression="lz4", statistics=False)

    def _read_edges(self, group: int) -> pl.DataFrame:
        paths = State(self.state).tables(self.groups[group], EDGES)
        edges = pl.concat([pl.DataFrame(schema=HASHED_EDGE_SCHEMA), *map(pl.read_parquet, paths)])
        counted = self.folder / "counted.npy"
        if counted.exists():
            edges = edges.filter(pl.col("message").is_in(pl.Series(np.load(counted, mmap_mode="r")).implode()))
        return edges

    def _read_names(self, group: int) -> pl.DataFrame:
        paths = State(self.state).tables(self.groups[group], NAMES)
        return pl.concat([pl.DataFrame(schema=NAME_SCHEMA), *map(pl.read_parquet, paths)])

    def _read_shared(self, group: int) -> pl.Series:
        """The shared items of a group: its stretch of every range, which come in order."""
        found = [pl.Series("item", dtype=pl.Int64)]
        for number in range(len(self.groups)):
            shared = _look_into(self.file(_SHARED, number))
            begin, end = (shared["group"].search_sorted(group, side) for side in ("left", "right"))
            found.append(shared["item"][begin:end])
        return pl.concat(found)


def _look_into(file: Path) -> pl.DataFrame:
    """A table of which only a stretch will be read."""
    table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    return pl.DataFrame(table)
