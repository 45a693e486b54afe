"""What is done when a run can be finished: its edges contracted, its graph and its account written.

A large run is contracted by the workers. A small one would spend its time on starting them, so up to a number of edges
that surely fits, which is a setting, it is contracted in this process.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from provenance_store.model.account import Account
from provenance_store.model.failpoints import reach
from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.output import GRAPH
from provenance_store.reduction.schemas import HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.state import EDGES, NAMES, Part, State
from provenance_store.settings import Settings
from spark_apps.reducer.contraction import contract, spell
from spark_apps.reducer.groups import Groups
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.naming import read_names_again
from spark_apps.session import expect_edges
from spark_apps.spool import Spool, count_rows, write_table

_EDGE_COLUMNS = (
    "message long, relation tinyint, dependent_hi long, dependent_lo long, dependency_hi long, dependency_lo long"
)
_NAME_COLUMNS = "hi long, lo long, id string, lake boolean"


@dataclass(frozen=True)
class Finisher:
    """Finishes runs of a state."""

    spark: SparkSession
    settings: Settings
    state: State
    metrics: Metrics

    def finish(self, topic: str, parts: Sequence[Part], judgement: Judgement, folder: Path) -> Account:
        """Write the run's graph and account into a folder that is prepared for them."""
        named = list(parts)
        if judgement.lacks_names:
            named += read_names_again(self.spark, self.settings, self.state, topic, judgement.run)
        names = self.state.tables(named, NAMES)
        small = sum(part.edges for part in parts) <= self.settings.reducer.edges_here
        contract_parts = self._contract_here if small else self._contract_on_workers
        counts = contract_parts(parts, names, judgement, folder)
        reach("graph written")
        begun = min((part.read_at for part in parts), default=0) / 1000
        account = judgement.account(**counts._asdict(), seconds=time.time() - begun)
        account.write(folder)
        self.metrics.finished(account)
        return account

    def _contract_here(
        self, parts: Sequence[Part], names: Sequence[Path], judgement: Judgement, folder: Path
    ) -> "_Counts":
        from provenance_store.reduction.hashed import contract_hashed  # noqa: PLC0415 - takes a second to import

        edges = pl.concat(
            [pl.DataFrame(schema=HASHED_EDGE_SCHEMA), *map(pl.read_parquet, self.state.tables(parts, EDGES))]
        )
        if (counted := _counted(judgement)) is not None:
            edges = edges.join(counted.to_frame(), on="message", how="semi")
        known = pl.concat([pl.DataFrame(schema=NAME_SCHEMA), *map(pl.read_parquet, names)])
        graph, unmade = contract_hashed(edges, known, names_records=judgement.names_records)
        graph.write_parquet(folder / GRAPH)
        return _Counts(edges.height, graph.height, unmade)

    def _contract_on_workers(
        self, parts: Sequence[Part], names: Sequence[Path], judgement: Judgement, folder: Path
    ) -> "_Counts":
        with _emptied(self.state.scratch) as scratch, _unfinished(folder / GRAPH) as graph:
            counted = _counted(judgement)
            if not judgement.names_records:
                edges = self._read_edges(parts, counted)
                return _Counts(edges.count(), self._join(edges, names, judgement, scratch, graph), unmade=0)
            groups = Groups(self.spark, self.state, parts, counted, scratch / "groups")
            surveyed = groups.survey()
            if any(part.misnamed for part in parts):
                left = self._join(self._read_edges(parts, counted), names, judgement, scratch, graph)
            else:
                left = groups.contract(graph)
            return _Counts(surveyed.edges, left, surveyed.unmade)

    def _join(self, edges: DataFrame, names: Sequence[Path], judgement: Judgement, scratch: Path, graph: Path) -> int:
        """Contract by Spark's joins; how many dependencies are left."""
        pairs = contract(edges, Spool(self.spark, scratch / "spool"), names_records=judgement.names_records)
        write_table(spell(pairs, self._read(names, _NAME_COLUMNS)), graph)
        return count_rows(graph)

    def _read_edges(self, parts: Sequence[Part], counted: pl.Series | None) -> DataFrame:
        """The edges of the messages that count."""
        expect_edges(self.spark, sum(part.edges for part in parts))
        edges = self._read(self.state.tables(parts, EDGES), _EDGE_COLUMNS)
        if counted is None:
            return edges
        used = self.spark.createDataFrame(pa.table({"message": counted.to_arrow()}), "message long")
        return edges.join(used, "message")

    def _read(self, paths: Sequence[Path], columns: str) -> DataFrame:
        if not paths:
            return self.spark.createDataFrame([], columns)
        return self.spark.read.schema(columns).parquet(*map(str, paths))


class _Counts(NamedTuple):
    edges_local: int
    edges_out: int
    unmade: int


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A folder that is gone at the end, and whatever an earlier process left of it at the start."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes the given one when all is written."""
    unfinished = path.with_name(f".{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    yield unfinished
    unfinished.rename(path)


def _counted(judgement: Judgement) -> pl.Series | None:
    """The messages that count; None where all of them do."""
    return judgement.used["message"] if judgement.discarded or judgement.duplicates else None
