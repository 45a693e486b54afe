"""The stream of topics as Spark reads it, batch by batch, into the state: from where it was left, exactly once.

Spark logs a batch's offsets before it hands the batch over, and commits it after; a batch that was not committed comes
again with the same number and the same offsets. The state's record lies between the two, so whatever dies on the way,
the batch is in the state once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from provenance_store.errors import HeadwaterError, JobError
from provenance_store.model.failpoints import reach
from provenance_store.model.message import Message
from provenance_store.reduction.state import Part, State
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from provenance_store.transport.deadletters import Letter, send_rejected
from spark_apps.reducer.local import place, reduce_partitions
from spark_apps.reducer.progress import Lag, Place
from spark_apps.session import kafka_source_options

_POLL_SECONDS = 0.05
# A partition with messages that was not read for so long is named.
_PATIENCE_SECONDS = 30.0


class Stream:
    """Topics that are read into a state.

    Batches up to `done` are. `keep` makes a batch done for ever, in one step; `watch` may look at its records before.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        state: State,
        subscription: tuple[str, str],
        *,
        done: int,
        only: str | None = None,
        keep: Callable[[int, list[Part]], None],
        watch: Callable[[DataFrame], DataFrame] = lambda records: records,
        lagging: Callable[[Mapping[Place, int]], None],
        say: Say,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._state = state
        self._subscription = subscription
        self._only = only
        self._keep = keep
        self._watch = watch
        self._lagging = lagging
        self._say = say
        self._done = done
        self._refusal: HeadwaterError | None = None

    def catch_up(self) -> None:
        """Read what there is now."""
        self._read(self._writer().trigger(availableNow=True).start(), lambda: False)

    def follow(self, until: Callable[[], bool], *, every: float = 0.0) -> None:
        """Read what comes, until it is enough: as soon as there is a whole batch, or after so many seconds."""
        self._read(self._writer(every).trigger(processingTime="0 seconds").start(), until)

    def _read(self, query: StreamingQuery, until: Callable[[], bool]) -> None:
        lag = Lag(_PATIENCE_SECONDS)
        try:
            while query.isActive and not until():
                lag.update(query.lastProgress or {})
                self._lagging(lag.waiting)
                for stalled in lag.stalled():
                    self._say(stalled)
                time.sleep(_POLL_SECONDS)
            if self._refusal is not None:
                raise self._refusal
            if (error := query.exception()) is not None:
                raise JobError(f"The stream could not be read on: {error}")
        finally:
            query.stop()

    def _writer(self, delay: float = 0.0) -> DataStreamWriter:
        batch = self._settings.reducer.messages_per_batch
        patience = {"minOffsetsPerTrigger": str(batch), "maxTriggerDelay": f"{round(delay * 1000)}ms"} if delay else {}
        records = (
            self._spark.readStream.format("kafka")
            .options(**kafka_source_options(self._settings), **patience)
            .option(*self._subscription)
            .option("maxOffsetsPerTrigger", batch)
            # What retention took away before it was read is missing from the manifest's count, and named there.
            .option("failOnDataLoss", "false")
            .load()
        )
        if self._only is not None:
            # Of other runs it must be known that they are there, and no more.
            records = records.withColumn("value", F.when(is_of(self._only), F.col("value")))
        checkpoint = str(self._state.checkpoint.absolute())
        return records.writeStream.foreachBatch(self._take).option("checkpointLocation", checkpoint)

    def _take(self, records: DataFrame, batch: int) -> None:
        if batch <= self._done:
            return
        parts = reduce_partitions(self._watch(records), self._state.folder, only=self._only)
        reach("parts written")
        for topic in {part.topic for part in parts if part.rejected}:
            self._send_rejected(topic, [part for part in parts if part.topic == topic])
        reach("rejected sent")
        try:
            self._keep(batch, parts)
        except HeadwaterError as error:  # Spark would wrap it in its own words
            self._refusal = error
            raise
        self._done = batch
        reach("batch recorded")
        self._say(_describe(batch, parts))

    def _send_rejected(self, topic: str, parts: Sequence[Part]) -> None:
        send_rejected(self._settings, topic, [_letter(row) for row in self._state.read_rejected(parts)])


def _letter(row: Mapping[str, Any]) -> Letter:
    headers = dict(zip(row["names"] or (), row["values"] or (), strict=True))
    message = Message(headers, bytes(row["value"] or b""))
    return *place(int(row["message"])), (message, str(row["reason"]))


def is_of(run: str) -> Column:
    """Whether a record is of the run, or does not tell its run."""
    runs = F.transform(F.filter("headers", lambda header: header["key"] == "run"), lambda header: header["value"])
    return F.isnull(runs) | (F.size(runs) == 0) | F.array_contains(runs, F.lit(run).cast("binary"))


def _describe(batch: int, parts: Sequence[Part]) -> str:
    messages = sum(part.messages for part in parts)
    before, after = sum(part.edges_in for part in parts), sum(part.edges for part in parts)
    return f"batch {batch}: {messages:,} messages, {before:,} edges reduced to {after:,} locally"
