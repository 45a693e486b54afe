"""A stream query as a Structured Streaming job: built, run from where it was left, and finished.

`build` makes the streaming DataFrame, which is all that Spark plans; `StreamJob` runs it into the lake. A step's files
are written before Spark commits its batch, and a batch that was not committed comes again with the same offsets and the
same state, so its files are written again with the same content. The driver sees no event: it publishes what the
watermark has closed.
"""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from provenance_store.errors import JobError
from provenance_store.model.message import SCHEMA as MESSAGE_SCHEMA
from provenance_store.settings import Settings
from provenance_store.streams.assertions import Keep
from provenance_store.streams.event import END
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.lanes import late_of
from provenance_store.streams.live_messages import LIVE, topic_of
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.telling import Expiry
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.session import kafka_producer_options
from spark_apps.streams.processor import SCHEMA, STATE, Bench, QueryProcessor, join_parts, tell
from spark_apps.streams.sources import read_sources

# What the arbitrary-state operator needs.
_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_POLL_SECONDS = 0.1
# Of so many batches Spark remembers how they went; it is asked after every one.
_REMEMBERED = "spark.sql.streaming.numRecentProgressUpdates"


def build(
    spark: SparkSession, settings: Settings, query: StreamQuery, bench: Bench, *, buckets: int, batch: int | None
) -> DataFrame:
    """What the query tells live, as a streaming DataFrame with the processor's schema; the rest workers write."""
    # Events of different lanes never meet, so each bucket of lanes is a task's; and all of a lane are in one bucket.
    return (
        read_sources(spark, settings, query, buckets, batch)
        .groupBy("bucket")
        .transformWithStateInPandas(
            statefulProcessor=QueryProcessor(bench), outputStructType=SCHEMA, outputMode="Append", timeMode="EventTime"
        )
    )


class StreamJob:
    """A run of a query.

    With `live`, its forward provenance is sent to Kafka as results are made. With `period`, results are published in
    segments of so many milliseconds. With `capture` the true parents of every event are recorded too, and what is kept
    may be more than is needed, or nothing, and another `execution` may make the steps: for tests and baselines.
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
        period: int | None = None,
        live: Expiry | None = None,
        execution: type[Execution] = Execution,
    ) -> None:
        # A session of its own, so that what it needs is no concern of others on the same Spark.
        self._spark = spark.newSession()
        self._settings = settings
        self._query = query
        self._batch = batch
        self._live = live
        self._late = 0
        self.workshop = Workshop(settings.home, run, query)
        self.workshop.open(Begun(buckets=settings.streams.buckets if query.by else 1, period=period))
        self._buckets = self.workshop.begun.buckets
        self._bench = Bench(
            settings,
            run,
            query,
            begun=self.workshop.begun,
            capture=capture,
            keep=keep,
            live=live,
            execution=execution,
        )
        conf = self._spark.conf
        conf.set(_STORE, _ROCKS)
        conf.set(_REMEMBERED, "20")
        conf.set("spark.sql.shuffle.partitions", str(min(self._buckets, spark.sparkContext.defaultParallelism)))

    def catch_up(self) -> None:
        """Read what there is now."""
        self._run(self._writer().trigger(availableNow=True).start(), lambda: False)

    def follow(self, until: Callable[[], bool]) -> None:
        """Read what comes, until it is enough."""
        self._run(self._writer().trigger(processingTime="0 seconds").start(), until)

    def finish(self) -> dict[str, list[Path]]:
        """End the run as if nothing could come any more; the versions that it made last, by dataset."""
        states = self._states()
        if states is not None:
            self._late += sum(row[0] for row in states.mapInPandas(_late, "late long").collect())
            told = states.groupBy("bucket").applyInPandas(_ending(self._bench), SCHEMA)
            self._send(told) if self._live else told.write.format("noop").mode("overwrite").save()
        return self.workshop.finish(self._settings.lake, self._late)

    def _writer(self) -> DataStreamWriter:
        told = build(self._spark, self._settings, self._query, self._bench, buckets=self._buckets, batch=self._batch)
        if self._live:
            KafkaTransport(self._settings).ensure_topics(topic_of(self._query.name))
            writer = self._with_headers(told).writeStream.format("kafka").options(**self._kafka())
        else:
            writer = told.writeStream.format("noop")
        return writer.option("checkpointLocation", str(self.workshop.checkpoint))

    def _send(self, told: DataFrame) -> None:
        self._with_headers(told).write.format("kafka").options(**self._kafka()).save()

    def _with_headers(self, told: DataFrame) -> DataFrame:
        headers = {"run": self.workshop.run, "query": self._query.name, "kind": LIVE, "schema": MESSAGE_SCHEMA}
        pairs = [
            F.struct(F.lit(name).alias("key"), F.lit(value).cast("binary").alias("value"))
            for name, value in headers.items()
        ]
        return told.withColumn("headers", F.array(*pairs))

    def _kafka(self) -> dict[str, str]:
        left_out = ("key.serializer", "value.serializer")
        options = kafka_producer_options(self._settings)
        chosen = {f"kafka.{name}": value for name, value in options.items() if name not in left_out}
        return {**chosen, "topic": topic_of(self._query.name), "includeHeaders": "true"}

    def _run(self, stream: StreamingQuery, until: Callable[[], bool]) -> None:
        told = -1
        try:
            while stream.isActive and not until():
                time.sleep(_POLL_SECONDS)
                if (progress := stream.lastProgress) is not None and progress["batchId"] > told:
                    told = self._count_late(stream, told)
                    self.workshop.publish(self._settings.lake, _watermark(progress), self._late)
                    self.workshop.trim_caches()
            if (error := stream.exception()) is not None:
                raise JobError(f"The stream query {self._query.name!r} could not go on: {error}")
        finally:
            stream.stop()
            self._count_late(stream, told)

    def _count_late(self, stream: StreamingQuery, told: int) -> int:
        """Count what Spark dropped in batches after the last one that was told of; the last one now."""
        new = [progress for progress in stream.recentProgress if progress["batchId"] > told]
        self._late += sum(map(_dropped, new))
        return max((progress["batchId"] for progress in new), default=told)

    def _states(self) -> DataFrame | None:
        """The states of all buckets as Spark's last batch left them, a row for each part."""
        if not any((self.workshop.checkpoint / "commits").glob("[0-9]*")):
            return None
        return (
            self._spark.read.format("statestore")
            .option("stateVarName", STATE)
            .load(str(self.workshop.checkpoint))
            .selectExpr("key.bucket AS bucket", "list_element.number AS number", "list_element.part AS part")
        )


def _ending(bench: Bench) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def end(rows: pd.DataFrame) -> pd.DataFrame:
        execution = bench.open()
        state = join_parts(zip(rows["number"].tolist(), rows["part"].tolist(), strict=True))
        return tell(execution.step(execution.lanes(int(rows["bucket"].iloc[0]), state), END))

    return end


def _late(frames: Iterable[Any]) -> Iterable[Any]:
    """Of each bucket, how many events came too late; one task may have the parts of several."""
    rows = pd.concat([pd.DataFrame({"bucket": [], "number": [], "part": []}), *frames])
    late = [
        late_of(join_parts(zip(some["number"].tolist(), some["part"].tolist(), strict=True)))
        for _, some in rows.groupby("bucket")
    ]
    yield pd.DataFrame({"late": late})


def _watermark(progress: Any) -> int:
    """Up to when everything has surely been made: a timer fires a millisecond after what it is for."""
    told = progress["eventTime"].get("watermark")
    return 0 if told is None else max(0, round(datetime.fromisoformat(told).timestamp() * 1000) - 1)


def _dropped(progress: Any) -> int:
    return sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in progress.get("stateOperators", ()))
