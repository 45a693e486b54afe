"""The reducer as an application: `build` says what is computed from a topic, `run` does it and writes the result."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.model.account import Account
from provenance_store.model.message import Message
from provenance_store.reduction.completeness import Judgement, judge
from provenance_store.reduction.exact import Rejected
from provenance_store.reduction.output import GRAPH, choose_runs, prepare
from provenance_store.reduction.schemas import MESSAGE_SCHEMA
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.reducer.contraction import Spool, contract
from spark_apps.reducer.deadletters import send_rejected
from spark_apps.reducer.local import explode_edges, from_polars, place, reduce_partitions, to_polars
from spark_apps.session import kafka_source_options

_POLL_SECONDS = 1.0
_USED_COLUMNS = "message long, run string, names_records boolean"


@dataclass(frozen=True)
class Reduction:
    """What `build` makes of a topic: its messages judged, and their edges where the workers left them."""

    rows: DataFrame
    judgements: list[Judgement]


def run(
    spark: SparkSession,
    settings: Settings,
    *,
    topic: str,
    out: Path,
    only: str | None = None,
    wait: float = 0.0,
    say: Say = lambda _: None,
) -> dict[Path, Account]:
    """Reduce a topic to folders in `out`; the folders with their accounts."""
    KafkaTransport(settings).source(topic).close()  # says plainly where there is no such topic
    with _spooling(settings) as spool:
        started = time.monotonic()
        reduction = _await(lambda: build(spark, settings, topic, spool), only, started + wait, say)
        chosen = choose_runs(reduction.judgements, f"Topic {topic}", only)
        send_rejected(settings, topic, _rejected(reduction))
        say(f"contracting {len(chosen)} runs globally")
        edges = spool("edges", _edges_used(spark, reduction.rows, chosen))
        graph = spool("graph", contract(edges, spool))
        local = _count_by_run(edges)
        folders = prepare(out, [one.run for one in chosen])
        accounts = {}
        for judgement in chosen:
            folder = folders[judgement.run]
            count = _write_graph(graph.filter(F.col("run") == judgement.run), spool, folder / GRAPH)
            accounts[folder] = judgement.account(
                edges_local=local.get(judgement.run, 0), edges_out=count, seconds=time.monotonic() - started
            )
            accounts[folder].write(folder)
        return accounts


def build(spark: SparkSession, settings: Settings, topic: str, spool: Spool) -> Reduction:
    """Read what the topic holds now, reduce it locally, and judge its messages."""
    records = (
        spark.read.format("kafka")
        .options(**kafka_source_options(settings))
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    rows = spool("messages", reduce_partitions(records))
    messages = to_polars(rows.select(*MESSAGE_SCHEMA)).cast(MESSAGE_SCHEMA)
    return Reduction(rows, judge(messages))


def _await(read: Callable[[], Reduction], only: str | None, deadline: float, say: Say) -> Reduction:
    """Read until the manifests are satisfied or the time is over; then it is what it is."""
    while True:
        reduction = read()
        asked = [one for one in reduction.judgements if only in {None, one.run}]
        if (asked and all(one.verdict == "complete" for one in asked)) or time.monotonic() >= deadline:
            return reduction
        say("waiting for messages that the manifest counts, or for the manifest")
        time.sleep(min(_POLL_SECONDS, max(deadline - time.monotonic(), 0)))


def _edges_used(spark: SparkSession, rows: DataFrame, judgements: list[Judgement]) -> DataFrame:
    used = pl.concat(
        one.used.select(
            "message", run=pl.lit(one.run, dtype=pl.String), names_records=pl.lit(one.names_records, dtype=pl.Boolean)
        )
        for one in judgements
    )
    edges = explode_edges(rows.filter(F.col("edges") > 0))
    return edges.join(from_polars(spark, used, _USED_COLUMNS), "message").drop("message")


def _count_by_run(edges: DataFrame) -> dict[str, int]:
    return {row["run"]: row["count"] for row in edges.groupBy("run").count().collect()}


def _write_graph(graph: DataFrame, spool: Spool, target: Path) -> int:
    """Move the part files that the workers wrote to their place, without Spark's own files beside them."""
    written = spool(f"graph-of-{target.parent.name}", graph.select("output", "input"))
    target.mkdir()
    for part in sorted(map(Path, (name.removeprefix("file://") for name in written.inputFiles()))):
        shutil.move(part, target / part.name)
    return sum(pl.scan_parquet(part).select(pl.len()).collect().item() for part in sorted(target.iterdir()))


def _rejected(reduction: Reduction) -> Iterator[tuple[int, int, Rejected]]:
    """What could not be read, with its partition and offset."""
    unread = reduction.rows.filter(F.col("reason").isNotNull())
    for row in unread.select("message", "reason", "header_names", "header_values", "value").toLocalIterator():
        headers = dict(zip(row["header_names"] or (), row["header_values"] or (), strict=True))
        yield (*place(row["message"]), Rejected(Message(headers, bytes(row["value"] or b"")), row["reason"]))


@contextmanager
def _spooling(settings: Settings) -> Iterator[Spool]:
    """A folder for what the stages hand on, so that it is on disk and not in memory; gone at the end."""
    parent = settings.home / "spool"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="reduce-", ignore_cleanup_errors=True) as folder:
        written = 0

        def spool(name: str, frame: DataFrame) -> DataFrame:
            nonlocal written
            written += 1
            path = str(Path(folder).absolute() / f"{written:03}-{name}")
            frame.write.parquet(path)
            return frame.sparkSession.read.schema(frame.schema).parquet(path)

        yield spool
