"""The search, breadth first from all starts at once: a join a round, each pair of a start and a record once."""

from itertools import count

from pyspark.sql import DataFrame

from provenance_store.services.service import Say
from spark_apps.lineage.lake import Lake
from spark_apps.spool import Spool, count_rows

_REACHED = "start int, node long, depth int"


def search(lake: Lake, depth: int | None, spool: Spool, say: Say) -> DataFrame:
    """What is reachable from which start by the fewest steps (start, node, depth), the starts at depth 0."""
    frontier = spool.keep(lake.starts.join(lake.nodes, "id").select("start", "node"), "reached/depth=0")
    for step in count(1):
        if depth is not None and step > depth:
            break
        pairs = frontier.toDF("start", "near").join(lake.links, "near").select("start", "far").toDF("start", "node")
        # Whoever was reached before was so by fewer steps, and a cycle ends.
        new = pairs.distinct().join(_reached(spool).drop("depth"), ["start", "node"], "left_anti")
        frontier = spool.keep(new, f"reached/depth={step}")
        found = count_rows(spool.folder / f"reached/depth={step}")
        if not found:
            break
        say(f"step {step}: {found:,} more reached")
    return _reached(spool)


def _reached(spool: Spool) -> DataFrame:
    return spool.spark.read.schema(_REACHED).parquet(str(spool.folder / "reached"))
