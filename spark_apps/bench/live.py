"""`python -m spark_apps.bench.live rates|delays --flow JSON … [--parallel N …] [--edges N] [--repeat N]`: ANK-N.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each flow and
parallelism, or `{"error": …, "kind": …}`. Results stand ready in files, a batch's each; a last result, far behind all
others in time, has the watermark pass them. Spark is started once, and its first run is not measured.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from provenance_store.bench.live_delay import Delays, delays_of, times_of
from provenance_store.bench.live_flow import Flow
from provenance_store.bench.live_rates import Rate, Turn
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import load_settings
from provenance_store.streams.live import Edge, Element, Expired, Result, SinkVertex, SourceVertex
from spark_apps.bench.usage import processor_seconds
from spark_apps.session import open_session
from spark_apps.streams.native_live import native_live

_BATCHES = 4
_PUSH = "push"
_SOURCE = pa.struct([("id", pa.string()), ("time", pa.timestamp("ms", "UTC"))])
_SCHEMA = pa.schema([("id", pa.string()), ("time", pa.timestamp("ms", "UTC")), ("sources", pa.list_(_SOURCE))])
_READ = "id string, time timestamp, sources array<struct<id: string, time: timestamp>>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.live")
    parser.add_argument("what", choices=["rates", "delays"])
    parser.add_argument("--flow", action="append", required=True)
    parser.add_argument("--parallel", type=int, action="append")
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args(arguments)
    return tell_failure(lambda: _measure(given))


def _measure(given: argparse.Namespace) -> None:
    flows = [msgspec.json.decode(one, type=Flow) for one in given.flow]
    spark = open_session(load_settings(), "headwater-bench-live", [])
    try:
        tell_progress("ANK-N, warming up")
        _run(spark, Flow(size=10), 1000, 2, _drop)
        for flow in flows:
            results = max(_BATCHES, given.edges // (flow.size * flow.queries))
            if given.what == "delays":
                tell_progress(f"ANK-N, delays of {flow.size} at {flow.overlap} %")
                tell(row=msgspec.to_builtins(_delays(spark, flow, results)))
                continue
            for parallel in given.parallel or [2]:
                turns = []
                for turn in range(given.repeat):
                    what = f"{flow.queries} queries of {flow.size} at {flow.overlap} %, in {parallel}"
                    tell_progress(f"ANK-N, {what}, turn {turn + 1}")
                    turns.append(_run(spark, flow, results, parallel, _drop))
                total = results * flow.queries
                row = Rate(
                    way="ANK-N", parallel=parallel, flow=flow, results=total, step=total // _BATCHES, turns=turns
                )
                tell(row=msgspec.to_builtins(row))
    finally:
        spark.stop()


def _drop(frame: DataFrame, _: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _delays(spark: SparkSession, flow: Flow, results: int) -> Delays:
    elements: list[Element] = []

    def take(frame: DataFrame, _: int) -> None:
        for at, kind, of, source in frame.selectExpr("unix_millis(at)", "kind", "id", "input").collect():
            if of != _PUSH:
                elements.append(_element(at, kind, of, source, times))

    times = times_of(flow, results)
    _run(spark, flow, results, 2, take)
    return delays_of("ANK-N", flow, sorted(elements, key=lambda one: one.at), times)


def _element(at: int, kind: str, of: str, source: str | None, times: dict[str, int]) -> Element:
    match kind:
        case "source":
            return SourceVertex(at, of, times[of])
        case "sink":
            return SinkVertex(at, of, times[of])
        case "edge":
            return Edge(at, of, source or "")
        case _:
            return Expired(at, of)


def _run(spark: SparkSession, flow: Flow, results: int, parallel: int, take: Callable[[DataFrame, int], None]) -> Turn:
    """From files to elements, with so many tasks to read and to aggregate."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(parallel))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        folder.mkdir()
        _write(flow, results, parallel, folder)
        read = session.readStream.schema(_READ).option("maxFilesPerTrigger", parallel).parquet(str(folder))
        elements = native_live(read.withWatermark("time", "0 seconds"), flow.reach)
        writer = elements.writeStream.foreachBatch(take).option("checkpointLocation", f"{scratch}/checkpoint")
        begin, used = time.perf_counter(), processor_seconds()
        stream = writer.trigger(availableNow=True).start()
        stream.awaitTermination()
        seconds, processor = time.perf_counter() - begin, processor_seconds() - used
        progress = stream.recentProgress
    durations = [one["durationMs"]["triggerExecution"] / 1000 for one in progress if one["numInputRows"] > 1]
    state = max(sum(int(one["memoryUsedBytes"]) for one in batch["stateOperators"]) for batch in progress)
    step = sum(durations) / max(1, len(durations))
    return Turn(seconds=seconds, step_seconds=step, processor=processor, state=state)


def _write(flow: Flow, results: int, parallel: int, folder: Path) -> None:
    step = -(-results // _BATCHES)
    last = 0
    for number, (watermark, made) in enumerate(flow.steps(results, step)):
        for share in range(parallel):
            _write_file(folder, number, share, made[share::parallel])
        last = watermark
    push = [Result(_PUSH, last + 10 * flow.reach, [])]
    for share in range(parallel):
        _write_file(folder, _BATCHES, share, push if share == 0 else [])


def _write_file(folder: Path, number: int, share: int, results: list[Result]) -> None:
    sources = [[{"id": source, "time": time} for source, time in one.sources] for one in results]
    columns = {"id": [one.id for one in results], "time": [one.time for one in results], "sources": sources}
    path = folder / f"{number:03}-{share}.parquet"
    pq.write_table(pa.table(columns, _SCHEMA), path)
    os.utime(path, (number, number))  # the file source takes the oldest first


if __name__ == "__main__":
    sys.exit(main())
