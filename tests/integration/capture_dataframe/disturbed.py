"""Captures one DataFrame job several times on a small cluster, undisturbed and disturbed, and prints what came of it.

Run as a script, like its sibling for RDDs, whose cluster and disturbances it uses.
"""

import json
import os
import sys
import time
from pathlib import Path

import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.lake import layout
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings, SparkSettings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.session import open_session
from tests.integration.capture_rdd.disturbed import CONF, Disturbance, cluster, dawdle, fail, kill_executor

ROWS = 30_000
GROUPS = 40


class At:
    """A function of one column that hands its value on, and disturbs the first task in which it meets the trigger."""

    def __init__(self, marker: Path, trigger: int, disturb: Disturbance) -> None:
        self.marker = marker
        self.trigger = trigger
        self.disturb = disturb

    def __call__(self, value: int) -> int:
        if value == self.trigger:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            self.disturb()
        return value


class Job:
    """A join, a grouping, and rows written one by one; disturbed at the places that are named."""

    def __init__(self, folder: Path, scenario: str, places: dict[str, Disturbance]) -> None:
        self.folder = folder
        self.scenario = scenario
        self.places = places

    def __call__(self, run: SparkRun) -> None:
        # The last row of a file comes when nearly all before it are told and sent.
        facts = run.read("facts").withColumn("v", self._at("read", F.col("v"), ROWS - 1))
        names = run.read("names")
        sums = facts.join(names, "k").groupBy("k").agg(F.sum("v").alias("v"), F.first("name").alias("name"))
        sums.withColumn("k", self._at("group", F.col("k"), 3)).write("sums")
        facts.filter("v % 2 = 0").withColumn("v", self._at("write", F.col("v"), ROWS - 2)).write("even", format="jsonl")

    def _at(self, place: str, column: Column, trigger: int) -> Column:
        if place not in self.places:
            return column
        marker = self.folder / f"{self.scenario}-{place}".replace(" ", "-")
        return F.udf(At(marker, trigger, self.places[place]), "bigint")(column)


SCENARIOS: dict[str, dict[str, Disturbance]] = {
    "undisturbed": {},
    "tasks fail": {"read": fail, "group": fail, "write": fail},
    "executor killed": {"group": kill_executor},
    "speculation": {"write": dawdle},
}


def main(folder: Path) -> None:
    """Print each scenario's graph and account."""
    with cluster(folder) as master:
        settings = Settings(
            home=folder / "home",
            lake=folder / "lake",
            recordings=folder / "recordings",
            spark=SparkSettings(master=master, driver_memory="1g", conf={**CONF, "spark.sql.shuffle.partitions": "2"}),
        )
        make_lake(settings.lake)
        session = open_session(settings, "disturbed", capture_jars(settings, lambda _: None))
        for number, (name, places) in enumerate(SCENARIOS.items()):
            started = time.monotonic()
            job = Job(folder, name, places)
            run_spark(f"d{number}", job, settings=settings, session=session, run="r1", outputs=["sums", "even"])
            reduced = reduce_messages(RecordingSource(folder / "recordings" / f"headwater.d{number}"))[0]
            values = read_outputs(settings.lake)
            told = {
                "scenario": name,
                "verdict": reduced.account.verdict,
                # Which row stands where may differ; what it is and what it came from may not.
                "graph": sorted((values[output], source) for output, source in reduced.graph.iter_rows()),
                "disturbed": len(list(folder.glob(f"{name.replace(' ', '-')}-*"))),
                "seconds": time.monotonic() - started,
            }
            (folder / f"told-{number}.json").write_text(json.dumps(told))
            for dataset in ("sums", "even"):
                layout.resolve(settings.lake, f"{dataset}/r1").path.rename(folder / f"{dataset}-{number}")
        session.stop()


def make_lake(lake: Path) -> None:
    with layout.new_version(layout.version_of(lake, "facts", "v1"), {}) as folder:
        for part in range(2):
            numbers = pl.Series("v", range(part, ROWS, 2), dtype=pl.Int64)
            pl.DataFrame({"k": numbers % GROUPS, "v": numbers}).write_parquet(folder / f"part-{part}.parquet")
    with layout.new_version(layout.version_of(lake, "names", "v1"), {}) as folder:
        names = pl.DataFrame({"k": pl.Series(range(GROUPS), dtype=pl.Int64)}).with_columns(name=pl.col("k").cast(str))
        names.write_parquet(folder / "part-0.parquet")


def read_outputs(lake: Path) -> dict[str, str]:
    """Each output record's content by the id that its file gives it."""
    found = {}
    for path in layout.resolve(lake, "sums/r1").files():
        for place, row in enumerate(pl.read_parquet(path).iter_rows()):
            found[f"lake:sums/r1/{path.name}#{place}"] = f"sums {row}"
    for path in layout.resolve(lake, "even/r1").files():
        offset = 0
        for line in path.read_bytes().splitlines(keepends=True):
            found[f"lake:even/r1/{path.name}#{offset}"] = f"even {line.decode()}"
            offset += len(line)
    return found


if __name__ == "__main__":
    # By its name, so that executors import the classes instead of being sent copies of them.
    from tests.integration.capture_dataframe import disturbed

    disturbed.main(Path(sys.argv[1]))
