"""A stream query as a Structured Streaming job: built, run from where it was left, and finished.

`build` makes the streaming DataFrame, which is all that Spark plans; `StreamJob` runs it into the lake. A batch's files
are written before Spark commits it, and a batch that was not committed comes again with the same offsets and the same
state, so its files are written again with the same content.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from provenance_store.errors import JobError
from provenance_store.settings import Settings
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Engine
from provenance_store.streams.folders import RunFacts, Workshop
from provenance_store.streams.landing import COLUMNS, END, PART_END, Landing, Telling
from provenance_store.streams.query import StreamQuery
from spark_apps.streams.processor import SCHEMA, STATE, QueryProcessor, join_parts
from spark_apps.streams.sources import read_sources

# What the arbitrary-state operator needs; and there is one state.
_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "1",
}
_POLL_SECONDS = 0.1


def build(
    spark: SparkSession,
    settings: Settings,
    query: StreamQuery,
    *,
    capture: bool = False,
    keep: Keep | None = "needed",
    batch: int | None = None,
) -> DataFrame:
    """What the query tells, as a streaming DataFrame with the processor's schema."""
    events = read_sources(spark, settings, query, batch)
    # Events of different keys may stand in one window, so the order of all is one order, and one task's.
    return (
        events.withColumn("lane", F.lit(0))
        .groupBy("lane")
        .transformWithStateInPandas(
            statefulProcessor=QueryProcessor(query, capture=capture, keep=keep),
            outputStructType=SCHEMA,
            outputMode="Append",
            timeMode="EventTime",
        )
    )


class StreamJob:
    """A run of a query.

    With `capture` the true parents of every event are recorded too, and what is kept may be more than is needed, or
    nothing: for tests and baselines.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        query: StreamQuery,
        run: str,
        *,
        capture: bool = False,
        keep: Keep | None = "needed",
        batch: int | None = None,
    ) -> None:
        # A session of its own, so that what it needs is no concern of others on the same Spark.
        self._spark = spark.newSession()
        for name, value in _CONF.items():
            self._spark.conf.set(name, value)
        self._settings = settings
        self._query = query
        self._capture = capture
        self._keep = keep
        self._batch = batch
        self._late = 0
        self.workshop = Workshop(settings.home, run, query)
        self.workshop.open()
        self._contents = Landing(self.workshop)

    def catch_up(self) -> None:
        """Read what there is now."""
        self._run(self._writer().trigger(availableNow=True).start(), lambda: False)

    def follow(self, until: Callable[[], bool]) -> None:
        """Read what comes, until it is enough."""
        self._run(self._writer().trigger(processingTime="0 seconds").start(), until)

    def finish(self) -> dict[str, Path]:
        """End the run as if nothing could come any more; the versions that it made, by dataset."""
        engine = Engine(self._query, self._state(), parents=self._capture)
        self._contents.take(PART_END, Telling(self._query, capture=self._capture, keep=self._keep).rows(engine, END))
        facts = RunFacts(
            run=self.workshop.run,
            query=self._query.name,
            until=END,
            late=self._late + engine.late,
            rejected=self.workshop.count_rejected(),
        )
        return self.workshop.finish(self._settings.lake, facts)

    def _writer(self) -> DataStreamWriter:
        told = build(
            self._spark, self._settings, self._query, capture=self._capture, keep=self._keep, batch=self._batch
        )
        checkpoint = str(self.workshop.checkpoint)
        return told.writeStream.foreachBatch(self._take).option("checkpointLocation", checkpoint)

    def _take(self, frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        self._contents.take(f"{batch:05}", zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))

    def _run(self, stream: StreamingQuery, until: Callable[[], bool]) -> None:
        try:
            while stream.isActive and not until():
                time.sleep(_POLL_SECONDS)
            if (error := stream.exception()) is not None:
                raise JobError(f"The stream query {self._query.name!r} could not go on: {error}")
        finally:
            stream.stop()
            self._late += sum(_dropped(progress) for progress in stream.recentProgress)

    def _state(self) -> bytes | None:
        """The engine's state as Spark's last batch left it."""
        if not any((self.workshop.checkpoint / "commits").glob("[0-9]*")):
            return None
        kept = (
            self._spark.read.format("statestore")
            .option("stateVarName", STATE)
            .load(str(self.workshop.checkpoint))
            .select("list_element.number", "list_element.part")
            .collect()
        )
        return join_parts((row[0], row[1]) for row in kept) if kept else None


def _dropped(progress: Any) -> int:
    return sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in progress.get("stateOperators", ()))
