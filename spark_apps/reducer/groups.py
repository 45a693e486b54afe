"""A run's parts contracted by the workers in groups, each by itself.

The steps are the library's `grouped`; here is who does them, and what lies on disk in between:

    counted.npy                      the messages that count, where not all do
    surveys/<group>.arrow            what each group speaks of
    routes/<range>.arrow             where searches that leave a group go on
    groups/<group>.npz               each group's edges, ready to be searched
    <round>/found/<group>.arrow      what its searches found in a round
    <round>/crossings/<group>.arrow  where they went on, sorted by the group that they went to
    <round>/names/<group>.arrow      how the records in them are called

Each task reads and writes files of its own and hands on a number, so no edge passes through the driver.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from provenance_store.reduction.schemas import HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.state import EDGES, NAMES, Part, State
from spark_apps.worker import do_on_workers

# So many edges a group: few enough for a task's memory, many enough to have most of what it speaks of to itself.
_EDGES_A_GROUP = 750_000
# Every group looks into the files of every other: a run that would have more groups gets larger ones.
_MOST_GROUPS = 256
# From this round on a group looks whether it has met a crossing before, so that a cycle ends; few chains are longer.
_PATIENCE = 4

_SURVEYS, _ROUTES, _GROUPS = "surveys", "routes", "groups"
_FOUND, _CROSSINGS, _SENT_NAMES = "found", "crossings", "names"


class Surveyed(NamedTuple):
    """What a run comes to before it is contracted."""

    edges: int
    unmade: int


class Groups:
    """The parts of a run, in a folder for what lies in between; `counted` are the messages, where not all count."""

    def __init__(
        self, spark: SparkSession, state: State, parts: Sequence[Part], counted: pl.Series | None, folder: Path
    ) -> None:
        self._spark = spark
        groups = _group(parts)
        self._task = _Task(state.folder.absolute(), folder.absolute(), tuple(tuple(group) for group in groups))
        for name in (_SURVEYS, _ROUTES, _GROUPS):
            (folder / name).mkdir(parents=True)
        if counted is not None:
            np.save(folder / "counted.npy", counted.sort().to_numpy())

    def survey(self) -> Surveyed:
        """Look into all groups, as `contract` needs it."""
        return Surveyed(sum(self._on_workers(self._task.survey)), sum(self._on_workers(self._task.compare)))

    def contract(self, graph: Path) -> int:
        """Write the graph's parts into a folder; how many dependencies they hold."""
        task = self._task
        graph.mkdir()
        for turn in count():
            task.prepare(turn)
            if not sum(self._on_workers(partial(task.search, turn=turn))):
                return sum(self._on_workers(partial(task.close, turn=turn, graph=graph.absolute())))
        raise AssertionError("unreachable")

    def _on_workers(self, task: Callable[[int], int]) -> list[int]:
        return do_on_workers(self._spark, task, len(self._task.groups))


def _group(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts in groups: neighbours in their Kafka partition, which is where a task tells what it does."""
    most = max(_EDGES_A_GROUP, sum(part.edges for part in parts) // _MOST_GROUPS)
    groups: list[list[Part]] = []
    partition, edges = -1, 0
    for part in sorted(parts, key=lambda part: part.partition):
        if not groups or part.partition != partition or edges + part.edges > most:
            groups.append([])
            partition, edges = part.partition, 0
        groups[-1].append(part)
        edges += part.edges
    return groups


@dataclass(frozen=True)
class _Task:
    """What a worker does for a group or a range, of which there are equally many."""

    state: Path
    folder: Path
    groups: tuple[tuple[Part, ...], ...]

    def prepare(self, turn: int) -> None:
        for table in (_FOUND, _CROSSINGS, _SENT_NAMES):
            (self.folder / str(turn) / table).mkdir(parents=True)

    def survey(self, group: int) -> int:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from provenance_store.reduction.grouped import survey  # noqa: PLC0415 - takes a second to import

        edges = self._read_edges(group)
        survey(edges).write_ipc(self._file(_SURVEYS, group))
        return edges.height

    def compare(self, number: int) -> int:
        from provenance_store.reduction.grouped import compare, cut  # noqa: PLC0415

        surveys = [_look_into(self._file(_SURVEYS, group)) for group in range(len(self.groups))]
        comparison = compare([one[cut(one["item"], number, len(self.groups))] for one in surveys])
        comparison.routes.write_ipc(self._file(_ROUTES, number))
        return comparison.unmade

    def search(self, group: int, turn: int) -> int:
        """What begins in a group, or in later rounds came to it; how often that went on elsewhere."""
        from provenance_store.reduction.grouped import Group, begin, go_on, names_to_send  # noqa: PLC0415

        if turn == 0:
            routes = list(self._slices(_ROUTES, "group", group))
            searched = Group.of(self._read_edges(group), pl.concat(routes))
            searched.save(self._saved(group))
            reached = begin(searched)
        else:
            came = self._came_to(group, turn)
            if not came.height:
                return 0
            reached = go_on(Group.load(self._saved(group)), came)
        reached.found.write_ipc(self._file(f"{turn}/{_FOUND}", group))
        if reached.crossings.height:
            reached.crossings.write_ipc(self._file(f"{turn}/{_CROSSINGS}", group))
            names = names_to_send(reached.crossings, self._read_names(group, turn))
            names.write_ipc(self._file(f"{turn}/{_SENT_NAMES}", group))
        return reached.crossings.height

    def close(self, group: int, turn: int, graph: Path) -> int:
        """Write a group's part of the graph; how many dependencies it holds."""
        from provenance_store.reduction.grouped import FOUND_SCHEMA  # noqa: PLC0415
        from provenance_store.reduction.hashed import spell_hashed  # noqa: PLC0415

        files = [self._file(f"{before}/{_FOUND}", group) for before in range(turn + 1)]
        found = [_look_into(file) for file in files if file.exists()]
        part = spell_hashed(pl.concat([pl.DataFrame(schema=FOUND_SCHEMA), *found]), self._read_names(group, turn))
        if part.height or group == 0:  # a graph of nothing is a table too
            part.write_parquet(graph / f"part-{group:05}.parquet")
        return part.height

    def _came_to(self, group: int, turn: int) -> pl.DataFrame:
        came = self._crossings(group, turn - 1)
        if turn >= _PATIENCE and came.height:
            for before in range(turn - 1):
                came = came.join(self._crossings(group, before), on=came.columns, how="anti")
        return came

    def _crossings(self, group: int, turn: int) -> pl.DataFrame:
        """What was sent to a group in a round, each once."""
        from provenance_store.reduction.grouped import CROSSING_SCHEMA  # noqa: PLC0415

        sent = self._slices(f"{turn}/{_CROSSINGS}", "to", group)
        return pl.concat([pl.DataFrame(schema=CROSSING_SCHEMA), *sent]).unique()

    def _read_names(self, group: int, turn: int) -> pl.DataFrame:
        """The names in a group's parts, and those that were sent to it before a round."""
        paths = State(self.state).tables(self.groups[group], NAMES)
        sent = (
            names.drop("to") for before in range(turn) for names in self._slices(f"{before}/{_SENT_NAMES}", "to", group)
        )
        return pl.concat([pl.DataFrame(schema=NAME_SCHEMA), *map(pl.read_parquet, paths), *sent])

    def _read_edges(self, group: int) -> pl.DataFrame:
        paths = State(self.state).tables(self.groups[group], EDGES)
        edges = pl.concat([pl.DataFrame(schema=HASHED_EDGE_SCHEMA), *map(pl.read_parquet, paths)])
        counted = self.folder / "counted.npy"
        if counted.exists():
            edges = edges.filter(pl.col("message").is_in(pl.Series(np.load(counted, mmap_mode="r")).implode()))
        return edges

    def _slices(self, table: str, column: str, group: int) -> Iterator[pl.DataFrame]:
        """A group's stretch of every file of a table, which are sorted by that column."""
        for number in range(len(self.groups)):
            file = self._file(table, number)
            if file.exists():
                rows = _look_into(file)
                begin, end = (rows[column].search_sorted(group, side) for side in ("left", "right"))
                yield rows[begin:end]

    def _file(self, table: str, number: int) -> Path:
        return self.folder / table / f"{number}.arrow"

    def _saved(self, group: int) -> Path:
        return self.folder / _GROUPS / f"{group}.npz"


def _look_into(file: Path) -> pl.DataFrame:
    """A table of which only a stretch will be read."""
    table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    return pl.DataFrame(table)
