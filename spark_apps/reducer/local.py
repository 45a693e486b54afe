"""The local reducers: each Kafka partition decoded and contracted where it is read, and written to the state there.

A task writes its edges itself and hands on a line for each part, so that no edge passes through another process, let
alone the driver. What it writes counts only once the driver has recorded it, so a task that is tried again, or twice at
once, does no harm.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.model.message import Message
from provenance_store.reduction.schemas import GENERATED, HASHED_EDGE_SCHEMA, MESSAGE_SCHEMA, NAME_SCHEMA, USED
from provenance_store.reduction.state import EDGES, MESSAGES, NAMES, REJECTED, TIMES, Part, State
from spark_apps.settling import settle

# The number of a message is its place: the partition above, the offset below.
_OFFSET_BITS = 44
# A part goes to disk when it holds so many edges: what a worker's memory must hold beside one Arrow batch.
_EDGES_A_PART = 250_000
_COMPRESSION: Literal["lz4"] = "lz4"
# When each message was sent, in milliseconds.
_TIME_SCHEMA = pl.Schema({"message": pl.Int64, "told_at": pl.Int64})
_REJECTED_SCHEMA: dict[str, Any] = {
    "message": pl.Int64,
    "reason": pl.String,
    "names": pl.List(pl.String),
    "values": pl.List(pl.String),
    "value": pl.Binary,
}


def reduce_partitions(
    records: DataFrame, state: Path, *, only: str | None = None, every_name: bool = False
) -> list[Part]:
    """Reduce Kafka records (topic, partition, offset, timestamp, headers, value) into parts of the state.

    Of other runs than the `only` one, where it is given, a part tells that they are there.
    """
    plain = records.select(
        "topic",
        "partition",
        number(F.col("partition"), F.col("offset")).alias("message"),
        F.unix_millis("timestamp").alias("told_at"),
        F.col("headers.key").alias("names"),
        F.col("headers.value").alias("values"),
        "value",
    )
    begun = time.time_ns() // 1_000_000
    lines = plain.mapInArrow(
        _reducer(str(state.absolute()), begun, only, every_name=every_name), "part binary"
    ).toArrow()
    return [msgspec.json.decode(line, type=Part) for line in lines.column("part").to_pylist()]


def warm_workers(spark: SparkSession) -> None:
    """Have every worker load what it will need, before the first message waits for it."""
    tasks = spark.sparkContext.defaultParallelism
    spark.range(0, tasks, 1, tasks).mapInArrow(_warm, "id long").collect()


def _warm(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from provenance_store.reduction.warm import warm_up  # noqa: PLC0415 - takes a second to import

    warm_up()
    pa.array([b""])  # loads pandas
    settle()
    yield from batches


def number(partition: Column, offset: Column) -> Column:
    """The number of a message: its place in the topic."""
    return F.shiftleft(partition.cast("long"), _OFFSET_BITS) + offset


def place(message: int) -> tuple[int, int]:
    """The partition and offset that a message's number stands for."""
    return message >> _OFFSET_BITS, message & ((1 << _OFFSET_BITS) - 1)


def _reducer(
    state: str, begun: int, only: str | None, *, every_name: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reduce_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # One core a task: what the numeric libraries would start besides only takes it from the others.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from provenance_store.reduction.local import reduce_locally  # noqa: PLC0415 - takes a second to import

        writer = _PartWriter(State(Path(state)), begun)
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            messages = [
                Message(_headers(names, values), value or b"")
                for names, values, value in zip(columns["names"], columns["values"], columns["value"], strict=True)
            ]
            if only is not None:
                columns, messages = writer.leave_others(columns, messages, only)
            if messages:
                local = reduce_locally(messages, columns["message"], every_name=every_name)
                writer.add(columns, messages, local)
            yield from writer.flush(_EDGES_A_PART)
        yield from writer.flush(0)
        settle()

    return reduce_batches


class _Gathered:
    """What was gathered of one run in one partition, until it is enough for a part."""

    def __init__(self) -> None:
        self.messages: list[pl.DataFrame] = []
        self.edges: list[pl.DataFrame] = []
        self.names: list[pl.DataFrame] = []
        self.rejected: list[pl.DataFrame] = []
        self.times: list[pl.DataFrame] = []
        self.rows = 0
        self.told_at = 0


class _PartWriter:
    """Gathers tables by topic, partition and run, and writes them as parts."""

    def __init__(self, state: State, begun: int) -> None:
        self._state = state
        self._begun = begun
        self._gathered: dict[tuple[str, int, str | None], _Gathered] = {}

    def add(self, columns: dict[str, list[Any]], messages: list[Message], local: Any) -> None:
        """Add a batch. Its messages are of one partition; they may be of several runs."""
        edges, names = local.edges(), local.names()
        times = pl.DataFrame({name: columns[name] for name in _TIME_SCHEMA}, schema=_TIME_SCHEMA)
        origin = (columns["topic"][0], columns["partition"][0])
        runs = local.messages["run"].unique().to_list()
        for run in runs:
            alone = len(runs) == 1
            of_run = local.messages if alone else local.messages.filter(pl.col("run").eq_missing(pl.lit(run)))
            gathered = self._gathered.setdefault((*origin, run), _Gathered())
            gathered.messages.append(of_run)
            own = edges if alone else edges.join(of_run.select("message"), on="message", how="semi")
            gathered.edges.append(own)
            gathered.names.append(names if alone else _named_in(own, names))
            gathered.rejected.append(_unread(of_run, columns["message"], messages))
            gathered.times.append(times if alone else times.join(of_run.select("message"), on="message", how="semi"))
            gathered.rows += own.height
            gathered.told_at = max(gathered.told_at, *columns["told_at"])

    def leave_others(
        self, columns: dict[str, list[Any]], messages: list[Message], only: str
    ) -> tuple[dict[str, list[Any]], list[Message]]:
        """A batch without the messages of other runs, which are noted."""
        kept = []
        for row, message in enumerate(messages):
            run = message.headers.get("run") or None
            if run is None or run == only:
                kept.append(row)
            else:
                self._gathered.setdefault((columns["topic"][0], columns["partition"][0], run), _Gathered())
        return {name: [values[row] for row in kept] for name, values in columns.items()}, [messages[r] for r in kept]

    def flush(self, limit: int) -> Iterator[pa.RecordBatch]:
        """Write everything once there is as much as the limit; a row for each part."""
        if sum(one.rows for one in self._gathered.values()) < limit:
            return
        parts = [self._write(*key, gathered) for key, gathered in self._gathered.items()]
        self._gathered.clear()
        if parts:
            yield pa.RecordBatch.from_pydict({"part": [msgspec.json.encode(part) for part in parts]})

    def _write(self, topic: str, partition: int, run: str | None, gathered: _Gathered) -> Part:
        name = uuid.uuid4().hex
        messages = pl.concat([pl.DataFrame(schema=MESSAGE_SCHEMA), *gathered.messages])
        edges = pl.concat([pl.DataFrame(schema=HASHED_EDGE_SCHEMA), *gathered.edges])
        names = pl.concat([pl.DataFrame(schema=NAME_SCHEMA), *gathered.names])
        rejected = pl.concat([pl.DataFrame(schema=_REJECTED_SCHEMA), *gathered.rejected])
        times = pl.concat([pl.DataFrame(schema=_TIME_SCHEMA), *gathered.times])
        self._state.table(name, MESSAGES).parent.mkdir(parents=True)
        tables = {MESSAGES: messages, EDGES: edges, NAMES: names, REJECTED: rejected, TIMES: times}
        for table, rows in tables.items():
            if rows.height:
                rows.write_parquet(self._state.table(name, table), compression=_COMPRESSION, statistics=False)
        return Part(
            name=name,
            topic=topic,
            run=run,
            partition=partition,
            messages=messages.height,
            bytes=int(messages["bytes"].sum()),
            edges_in=int(messages["edges"].sum()),
            edges=edges.height,
            manifests=int(messages["manifest"].is_not_null().sum()),
            rejected=rejected.height,
            misnamed=_is_misnamed(edges),
            told_at=gathered.told_at,
            read_at=self._begun,
        )


def _named_in(edges: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    ends = pl.concat(edges.select(hi=f"{end}_hi", lo=f"{end}_lo") for end in ("dependent", "dependency")).unique()
    return names.join(ends, on=["hi", "lo"], how="semi")


def _unread(of_run: pl.DataFrame, numbers: list[int], messages: list[Message]) -> pl.DataFrame:
    reasons = dict(of_run.filter(pl.col("reason").is_not_null()).select("message", "reason").iter_rows())
    rows = [
        (number, reasons[number], list(message.headers), list(message.headers.values()), message.value)
        for number, message in zip(numbers, messages, strict=True)
        if number in reasons
    ]
    return pl.DataFrame(rows, schema=_REJECTED_SCHEMA, orient="row")


def _is_misnamed(edges: pl.DataFrame) -> bool:
    relation = pl.col("relation")
    user = (relation == USED) & (pl.col("dependent_lo") & 1 == 1)
    maker = (relation == GENERATED) & (pl.col("dependency_lo") & 1 == 1)
    return bool(edges.select((user | maker).any()).item())


def _headers(names: list[str] | None, values: list[bytes | None] | None) -> dict[str, str]:
    # As the Python client reads them: someone else's header may hold any bytes.
    pairs = zip(names or (), values or (), strict=True)
    return {name: (value or b"").decode("utf-8", "replace") for name, value in pairs}
