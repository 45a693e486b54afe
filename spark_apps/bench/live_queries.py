"""`python -m spark_apps.bench.live_queries --query NAME … [--events N] [--repeat N]`: the papers' queries on Spark.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each query, or
`{"error": …, "kind": …}`. Each turn reads the same files, one a batch, from a new checkpoint into a lake of its own,
and sends what it tells live to a real topic; Spark is started once, and its first run is not measured.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from provenance_store.bench.live_queries import Cost
from provenance_store.bench.live_ways import WAYS
from provenance_store.services import jvm
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import Settings, load_settings
from provenance_store.streams.examples import Example, find_example
from provenance_store.streams.examples.writing import write_events
from provenance_store.streams.live_messages import topic_of
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.session import open_session
from spark_apps.streams.job import StreamJob

_FILES = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.live_queries")
    parser.add_argument("--query", action="append", required=True)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args(arguments)
    return tell_failure(lambda: _measure(given))


def _measure(given: argparse.Namespace) -> None:
    settings = load_settings()
    jars = sorted(jvm.fetch(settings, "spark", tell_progress).glob("*.jar"))
    spark = open_session(settings, "headwater-bench-live", jars)
    try:
        for name in given.query:
            tell(row=msgspec.to_builtins(_measure_query(spark, settings, find_example(name), given)))
    finally:
        spark.stop()


def _measure_query(spark: SparkSession, settings: Settings, example: Example, given: argparse.Namespace) -> Cost:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    steps: dict[str, list[float]] = {way: [] for way in WAYS}
    try:
        _run(spark, settings, example, 1_000, "live")
        for turn in range(given.repeat):
            for way in WAYS:
                tell_progress(f"Spark, {example.name}, turn {turn + 1}: {way}")
                took = _run(spark, settings, example, given.events, way)
                seconds[way].append(took)
                steps[way].append(1000 * took / _FILES)
    finally:
        KafkaTransport(settings).delete_topic(topic_of(example.query.name))
    return Cost(where="Spark", query=example.name, events=given.events, sources=0.0, seconds=seconds, steps=steps)


def _run(spark: SparkSession, settings: Settings, example: Example, events: int, way: str) -> float:
    """Seconds of all of it."""
    chosen = WAYS[way]
    with tempfile.TemporaryDirectory() as scratch:
        own = settings.model_copy(update={"home": Path(scratch), "lake": Path(scratch) / "lake"})
        write_events(example, own.lake, count=events, seed=1, files=_FILES)
        job = StreamJob(
            spark, own, example.query, "bench", keep=chosen.keep, live=chosen.live, execution=chosen.execution, batch=1
        )
        begin = time.perf_counter()
        job.catch_up()
        return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
