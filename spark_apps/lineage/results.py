"""What a search reached, as the tables that a bulk trace leaves: spelled, filtered, and with verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.graph.answer import CrossedRun
from provenance_store.graph.reduced import ReducedGraph, dataset_name
from provenance_store.model.account import Verdict
from spark_apps.lineage.lake import Lake
from spark_apps.lineage.question import BulkQuestion
from spark_apps.spool import Spool

# As the account has it: what is known to be missing is worse than nothing known.
_WORST_FIRST: tuple[Verdict, ...] = ("partial", "unknown", "complete")
_PLACE = "^lake:[^/#]*"


@dataclass(frozen=True)
class Results:
    """The tables of one search."""

    lake: Lake
    reached: DataFrame  # start, node, depth, the starts at depth 0
    graphs: Sequence[ReducedGraph]
    question: BulkQuestion
    spool: Spool

    @cached_property
    def run_names(self) -> DataFrame:
        """(run, run_id, rank) of every graph."""
        accounts = [graph.account for graph in self.graphs]
        columns = {
            "run": pa.array(range(len(accounts)), pa.int32()),
            "run_id": [account.run for account in accounts],
            "rank": pa.array([_WORST_FIRST.index(account.verdict) for account in accounts], pa.int32()),
        }
        return self.spool.hand_over(columns, "runs")

    def records(self) -> DataFrame:
        """(start, record, dataset, depth) of all that is kept."""
        nodes = self._with_datasets(self.lake.nodes).withColumnRenamed("id", "record")
        if self.question.to is not None:
            nodes = nodes.filter(F.col("dataset") == self.question.to)
        if self.question.ends_only:
            nodes = nodes.join(self.lake.links.select("near").distinct().toDF("node"), "node", "left_anti")
        kept = self.reached.filter("depth > 0").join(nodes, "node").join(self.lake.starts, "start")
        return kept.select(F.col("id").alias("start"), "record", "dataset", "depth")

    def starts(self, records: DataFrame) -> DataFrame:
        """(start, verdict, records) of every start: the worst verdict of the runs crossed, and how many are kept."""
        worst = self._expanded().join(self._ranks_of_nodes(), "node").groupBy("start").agg(F.min("rank").alias("rank"))
        counts = records.groupBy(F.col("start").alias("id")).agg(F.count("*").alias("records"))
        told = self.lake.starts.join(worst, "start", "left").join(counts, "id", "left")
        # Nothing crossed is nothing missed.
        rank = F.coalesce(F.col("rank"), F.lit(_WORST_FIRST.index("complete")))
        verdict = F.array(*map(F.lit, _WORST_FIRST))[rank]
        number = F.coalesce(F.col("records"), F.lit(0))
        return told.select(F.col("id").alias("start"), verdict.alias("verdict"), number.alias("records"))

    def edges(self) -> DataFrame:
        """(output, input, run) of every dependency that was crossed from any start."""
        nodes = self.lake.nodes
        spelled = (
            self._crossed_links()
            .join(nodes.toDF("near", "near_id"), "near")
            .join(nodes.toDF("far", "far_id"), "far")
            .join(F.broadcast(self.run_names), "run")
        )
        near, far = ("output", "input") if self.question.direction == "backward" else ("input", "output")
        ends = {near: F.col("near_id"), far: F.col("far_id")}
        return spelled.select(
            *(ends[end].alias(end) for end in ("output", "input")), F.col("run_id").alias("run")
        ).distinct()

    def runs(self) -> list[CrossedRun]:
        """The runs that were crossed, filtered or not, because a gap in any of them may have hidden a record."""
        crossed = [row["run"] for row in self._crossed_links().select("run").distinct().collect()]
        accounts = (self.graphs[run].account for run in crossed)
        return sorted(CrossedRun(account.run, account.dic, account.verdict) for account in accounts)

    def _expanded(self) -> DataFrame:
        """The pairs that were gone on from: all but those where the limit stopped."""
        depth = self.question.depth
        return self.reached if depth is None else self.reached.filter(F.col("depth") < depth)

    def _crossed_links(self) -> DataFrame:
        expanded = self._expanded().select("node").distinct().toDF("near")
        return self.lake.links.join(expanded, "near", "left_semi")

    def _ranks_of_nodes(self) -> DataFrame:
        """(node, rank): the worst verdict of the runs that lead on from a node."""
        ranked = self.lake.links.join(F.broadcast(self.run_names), "run")
        return ranked.groupBy("near").agg(F.min("rank").alias("rank")).withColumnRenamed("near", "node")

    def _with_datasets(self, nodes: DataFrame) -> DataFrame:
        """Nodes with the dataset that each id names."""
        placed = nodes.withColumn("place", F.regexp_extract("id", _PLACE, 0))
        places = [row["place"] for row in placed.select("place").distinct().collect()]
        names = {"place": places, "dataset": pa.array(map(dataset_name, places), pa.string())}
        datasets = self.spool.hand_over(names, "datasets")
        return placed.join(F.broadcast(datasets), "place").drop("place")
