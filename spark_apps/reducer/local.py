"""The local reducers: each Kafka partition decoded and contracted where it is read, one row a message.

A row is the library's message row with its locally contracted edges in lists beside it, so that judging the messages
reads no edge, and the edges that count are exploded only once that is known.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.model.message import Message
from provenance_store.reduction.local import reduce_locally

# The number of a message is its place: the partition above, the offset below.
_OFFSET_BITS = 44

MESSAGE_COLUMNS = (
    "message long, run string, dic string, attempt string, seq long, kind string, bytes long, crc long, "
    "edges long, lake boolean, reason string, manifest binary"
)
_ROW = (
    f"{MESSAGE_COLUMNS}, relation array<tinyint>, dependent array<string>, dependency array<string>, "
    "header_names array<string>, header_values array<string>, value binary"
)


def reduce_partitions(records: DataFrame) -> DataFrame:
    """Kafka records (partition, offset, headers, value) to rows of messages with their local edges."""
    plain = records.select(
        number(F.col("partition"), F.col("offset")).alias("message"),
        F.col("headers.key").alias("names"),
        F.col("headers.value").alias("values"),
        "value",
    )
    return plain.mapInArrow(_reduce_batches, _ROW)


def explode_edges(rows: DataFrame) -> DataFrame:
    """The local edges of rows, with their message."""
    zipped = F.explode(F.arrays_zip("relation", "dependent", "dependency")).alias("edge")
    return rows.select("message", zipped).select("message", "edge.relation", "edge.dependent", "edge.dependency")


def number(partition: Column, offset: Column) -> Column:
    """The number of a message: its place in the topic."""
    return F.shiftleft(partition.cast("long"), _OFFSET_BITS) + offset


def place(message: int) -> tuple[int, int]:
    """The partition and offset that a message's number stands for."""
    return message >> _OFFSET_BITS, message & ((1 << _OFFSET_BITS) - 1)


def to_polars(frame: DataFrame) -> pl.DataFrame:
    """A small frame in the driver."""
    table = pl.from_arrow(frame.toArrow())
    assert isinstance(table, pl.DataFrame)  # noqa: S101 - a table with columns is never a series
    return table


def from_polars(spark: SparkSession, table: pl.DataFrame, schema: str) -> DataFrame:
    """A small table of the driver in Spark."""
    return spark.createDataFrame(table.to_arrow(compat_level=pl.CompatLevel.oldest()), schema)  # type: ignore[arg-type, unused-ignore]


def _reduce_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = batch.to_pydict()
        messages = [
            Message(_headers(names, values), value or b"")
            for names, values, value in zip(columns["names"], columns["values"], columns["value"], strict=True)
        ]
        local = reduce_locally(messages, columns["message"], every_name=True)
        table, edges = local.messages, local.spelled()
        lists = edges.group_by("message").agg("relation", "dependent", "dependency")
        unread = [
            (number, list(message.headers), list(message.headers.values()), message.value)
            for number, reason, message in zip(table["message"], table["reason"], messages, strict=True)
            if reason is not None
        ]
        rejected = pl.DataFrame(unread, schema=_REJECTED, orient="row")
        rows = table.join(lists, on="message", how="left").join(rejected, on="message", how="left")
        yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(_ARROW_ROW).to_batches()


def _headers(names: list[str] | None, values: list[bytes | None] | None) -> dict[str, str]:
    # As the Python client reads them: someone else's header may hold any bytes.
    pairs = zip(names or (), values or (), strict=True)
    return {name: (value or b"").decode("utf-8", "replace") for name, value in pairs}


_REJECTED: dict[str, Any] = {
    "message": pl.Int64,
    "header_names": pl.List(pl.String),
    "header_values": pl.List(pl.String),
    "value": pl.Binary,
}
_ARROW_ROW = pa.schema(
    [
        ("message", pa.int64()),
        ("run", pa.string()),
        ("dic", pa.string()),
        ("attempt", pa.string()),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("bytes", pa.int64()),
        ("crc", pa.int64()),
        ("edges", pa.int64()),
        ("lake", pa.bool_()),
        ("reason", pa.string()),
        ("manifest", pa.binary()),
        ("relation", pa.list_(pa.int8())),
        ("dependent", pa.list_(pa.string())),
        ("dependency", pa.list_(pa.string())),
        ("header_names", pa.list_(pa.string())),
        ("header_values", pa.list_(pa.string())),
        ("value", pa.binary()),
    ]
)
