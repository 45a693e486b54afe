"""What is done when a run can be finished: its edges contracted, its graph and its account written.

A large run is contracted by Spark's joins. A small one would spend its time on planning them, so up to a number of
edges that surely fits, which is a setting, it is contracted in this process.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from provenance_store.model.account import Account
from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.failpoints import reach
from provenance_store.reduction.output import GRAPH
from provenance_store.reduction.schemas import HASHED_EDGE_SCHEMA, NAME_SCHEMA
from provenance_store.reduction.state import EDGES, NAMES, Part, State
from provenance_store.settings import Settings
from spark_apps.reducer.contraction import Spool, contract, contract_links, spell
from spark_apps.reducer.groups import contract_groups
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.naming import read_names_again

_EDGE_COLUMNS = (
    "message long, relation tinyint, dependent_hi long, dependent_lo long, dependency_hi long, dependency_lo long"
)
_LINK_COLUMNS = "dependent_hi long, dependent_lo long, dependency_hi long, dependency_lo long"
_NAME_COLUMNS = "hi long, lo long, id string, lake boolean"
# So many edges a task: few enough for its memory, many enough to be worth a task.
_EDGES_A_TASK = 1_500_000


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
        counted = _counted(judgement)
        with _spooling(self.state.scratch) as spool:
            groups = contract_groups(self.spark.sparkContext, self.state, parts, counted, self.state.scratch / "groups")
            self._expect(groups.edges)
            if judgement.names_records and not any(part.misnamed for part in parts):
                pairs = contract_links(self._read(groups.links, _LINK_COLUMNS), spool)
                outputs: Sequence[Path] = groups.outputs
            else:
                edges = self._read(self.state.tables(parts, EDGES), _EDGE_COLUMNS)
                if counted is not None:
                    used = counted.to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
                    edges = edges.join(self.spark.createDataFrame(used, "message long"), "message")  # type: ignore[arg-type, unused-ignore]
                pairs = contract(edges, spool, names_records=judgement.names_records)
                outputs = names
            graph = spell(pairs, self._read(outputs, _NAME_COLUMNS), self._read(names, _NAME_COLUMNS))
            return _Counts(groups.edges, _write_graph(graph, folder), groups.unmade if judgement.names_records else 0)

    def _expect(self, edges: int) -> None:
        tasks = max(self.spark.sparkContext.defaultParallelism, -(-edges // _EDGES_A_TASK))
        self.spark.conf.set("spark.sql.shuffle.partitions", str(tasks))

    def _read(self, paths: Sequence[Path], columns: str) -> DataFrame:
        if not paths:
            return self.spark.createDataFrame([], columns)
        return self.spark.read.schema(columns).parquet(*map(str, paths))


class _Counts(NamedTuple):
    edges_local: int
    edges_out: int
    unmade: int


@contextmanager
def _spooling(folder: Path) -> Iterator[Spool]:
    """A folder for what the rounds hand on; gone at the end, and what an earlier process left of it at the start."""
    shutil.rmtree(folder, ignore_errors=True)
    written = 0

    def spool(frame: DataFrame) -> DataFrame:
        nonlocal written
        written += 1
        path = str(folder.absolute() / str(written))
        frame.write.option("compression", "lz4").parquet(path)
        return frame.sparkSession.read.schema(frame.schema).parquet(path)

    try:
        yield spool
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _counted(judgement: Judgement) -> pl.Series | None:
    """The messages that count; None where all of them do."""
    return judgement.used["message"] if judgement.discarded or judgement.duplicates else None


def _write_graph(graph: DataFrame, folder: Path) -> int:
    """Have the workers write the graph; how many dependencies it holds."""
    unfinished = folder / f".{GRAPH}"
    shutil.rmtree(unfinished, ignore_errors=True)
    graph.write.parquet(str(unfinished.absolute()))
    for other in unfinished.iterdir():
        if other.suffix != ".parquet":  # checksums of Hadoop's local file system
            other.unlink()
    unfinished.rename(folder / GRAPH)
    parts = sorted((folder / GRAPH).iterdir())
    return sum(pl.scan_parquet(part).select(pl.len()).collect().item() for part in parts)
