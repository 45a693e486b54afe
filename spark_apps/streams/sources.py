"""The sources of a stream query as streaming DataFrames of one schema: Kafka topics, and the files of datasets.

What cannot be read as an event has no time, and goes on as it is, so that it can be told of.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.lake.contents import all_lines, all_rows
from provenance_store.lake.layout import version_of
from provenance_store.settings import Settings
from provenance_store.streams.lanes import bucket_of
from provenance_store.streams.query import Source, StreamQuery
from spark_apps.session import kafka_source_options

# `delay` is the time of arrival until it is known when the event was.
SCHEMA = "source string, time long, file string, position long, delay long, content string, bucket int"
_ARROW = pa.schema(
    [
        ("source", pa.string()),
        ("time", pa.int64()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("delay", pa.int64()),
        ("content", pa.string()),
        ("bucket", pa.int32()),
    ]
)
_FILES = "path string, modificationTime timestamp, length long, content binary"
_ROWS_A_BATCH = 10_000

Row: TypeAlias = tuple[str, int | None, str, int, int, str, int]
Read: TypeAlias = Callable[[str, int, int, bytes], Row]


def read_sources(
    spark: SparkSession, settings: Settings, query: StreamQuery, buckets: int, batch: int | None
) -> DataFrame:
    """All events as they come, with the watermark of each source; of topics and files up to so many a batch."""
    frames = [_read(spark, settings, source, _event_reader(query, source, buckets), batch) for source in query.sources]
    return reduce(DataFrame.unionByName, frames)


def _read(spark: SparkSession, settings: Settings, source: Source, read: Read, batch: int | None) -> DataFrame:
    events = (
        _read_topic(spark, settings, source, read, batch)
        if source.topic
        else _read_files(spark, settings, source, read, batch)
    )
    timed = events.withColumn("at", F.timestamp_millis("time"))
    return timed.withWatermark("at", f"{source.lateness} milliseconds")


def _read_topic(spark: SparkSession, settings: Settings, source: Source, read: Read, batch: int | None) -> DataFrame:
    limit = {} if batch is None else {"maxOffsetsPerTrigger": str(batch)}
    messages = (
        spark.readStream.format("kafka")
        .options(**kafka_source_options(settings), **limit)
        .option("subscribe", source.topic or "")
        # An event that retention took before it was read cannot be replayed either: better to stop and say so.
        .option("failOnDataLoss", "true")
        .load()
    )
    chosen = messages.select("partition", "offset", F.unix_millis("timestamp").alias("came"), "value")
    return chosen.mapInArrow(_topic_reader(read), SCHEMA)


def _read_files(spark: SparkSession, settings: Settings, source: Source, read: Read, batch: int | None) -> DataFrame:
    limit = {} if batch is None else {"maxFilesPerTrigger": str(batch)}
    root = settings.lake.absolute()
    (root / source.dataset).mkdir(parents=True, exist_ok=True)
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .options(recursiveFileLookup="true", **limit)
        .load(str(root / source.dataset))
    )
    # Spark finds the files; that their contents are not asked for keeps it from reading them.
    chosen = files.select("path", F.unix_millis("modificationTime").alias("came"))
    return chosen.mapInArrow(_file_reader(source.dataset, root, read), SCHEMA)


def _topic_reader(read: Read) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        for batch in batches:
            for partition, offset, came, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield read(f"{partition:06}", offset, came, value or b"")

    return lambda batches: _in_batches(rows(batches))


def _file_reader(
    dataset: str, root: Path, read: Read
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        for batch in batches:
            for path, came in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                within = path.removeprefix("file:").lstrip("/").removeprefix(str(root / dataset).lstrip("/") + "/")
                name, _, file = within.partition("/")
                for position, content in _contents(version_of(root, dataset, name), file):
                    yield read(within, position, came, content)

    return lambda batches: _in_batches(rows(batches))


def _contents(version: Any, file: str) -> Iterator[tuple[int, bytes]]:
    if file.endswith(".parquet"):
        for positions, rows in all_rows(version, file):
            yield from zip(positions.tolist(), map(msgspec.json.encode, rows.to_pylist()), strict=True)
    else:
        for positions, lines in all_lines(version, file):
            yield from zip(positions.tolist(), lines, strict=True)


def _event_reader(query: StreamQuery, source: Source, buckets: int) -> Read:
    name, field = source.name, source.time

    def read(file: str, position: int, came: int, content: bytes) -> Row:
        text = content.decode("utf-8", "replace")
        try:
            event = msgspec.json.decode(content)
            time, bucket = event[field], bucket_of(query, event, buckets)
        except (msgspec.DecodeError, TypeError, KeyError, IndexError):
            time, bucket = None, 0
        if not isinstance(time, int) or isinstance(time, bool) or time < 0:
            return name, None, file, position, 0, text, 0
        return name, time, file, position, max(0, came - time), text, bucket

    return read


def _in_batches(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if len(part) == _ROWS_A_BATCH:
            yield _batch(part)
            part = []
    if part:
        yield _batch(part)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)], schema=_ARROW
    )
