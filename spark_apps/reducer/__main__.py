"""`python -m spark_apps.reducer --topic T --out DIR [--run ID] [--wait SECONDS] [--follow [--watermark SECONDS]]`.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"finished": FOLDER}` for each
folder written, or `{"error": …, "kind": …}`. With `--follow` it goes on until it is sent SIGTERM or SIGINT.
"""

import argparse
import re
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from provenance_store.model.account import Account
from provenance_store.services import jvm
from provenance_store.services.application import Stop, tell, tell_failure, tell_progress
from provenance_store.settings import LOOPBACK, Settings, load_settings
from spark_apps.reducer.app import run, serve
from spark_apps.reducer.local import warm_workers
from spark_apps.reducer.metrics import Metrics
from spark_apps.session import open_session

# A message is up to 900 kB, and a batch of them must fit in a worker's memory.
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MESSAGES_A_BATCH = 64


def main(arguments: list[str] | None = None) -> int:
    """Reduce one topic, or follow several; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.reducer")
    parser.add_argument("--topic", required=True, help="a topic; with --follow several, parted by commas, or with *")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--run")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for what a manifest counts")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--quiet", type=float, default=300.0, help="seconds after which a silent run is taken as it is")
    parser.add_argument(
        "--watermark", type=float, help="follow one topic whose runs do not end: seconds items stay open"
    )
    chosen = parser.parse_args(arguments)
    return tell_failure(lambda: _reduce(chosen))


def _reduce(chosen: argparse.Namespace) -> None:
    settings = load_settings()
    tell_progress("starting Spark")
    # Spark takes longer to start than the kernels take to load, so the one hides the other.
    threading.Thread(target=_warm, daemon=True).start()
    jars = sorted(jvm.fetch(settings, "spark", tell_progress).glob("*.jar"))
    spark = open_session(settings, "headwater-reduce", jars, {_BATCH: str(_MESSAGES_A_BATCH)})
    try:
        metrics = Metrics()
        if settings.reducer.metrics_port is not None:
            port = metrics.serve(settings.reducer.metrics_port)
            tell_progress(f"metrics on http://{LOOPBACK}:{port}/metrics")
        warm_workers(spark)
        tell_progress(f"reading topic {chosen.topic}")
        if chosen.follow:
            _follow(spark, settings, chosen, metrics)
            return
        folders = run(
            spark,
            settings,
            topic=chosen.topic,
            out=chosen.out,
            only=chosen.run,
            wait=chosen.wait,
            metrics=metrics,
            say=tell_progress,
        )
        for folder in folders:
            tell(finished=str(folder))
    finally:
        spark.stop()


def _follow(spark: SparkSession, settings: Settings, chosen: argparse.Namespace, metrics: Metrics) -> None:
    """Until someone asks for the end."""

    def finished(folder: Path, _: Account) -> None:
        tell(finished=str(folder))

    ends: dict[str, Any] = {"out": chosen.out, "stopped": Stop(), "finished": finished}
    if chosen.watermark is None:
        topics = subscription(chosen.topic)
        serve(spark, settings, subscription=topics, quiet=chosen.quiet, metrics=metrics, say=tell_progress, **ends)
        return
    from spark_apps.reducer.unending import follow  # noqa: PLC0415 - takes a second to import

    period = chosen.watermark
    follow(spark, settings, topic=chosen.topic, period=period, metrics=metrics, say=tell_progress, **ends)


def subscription(topics: str) -> tuple[str, str]:
    """How Spark is told of topics: by their names, or by a pattern that takes no dead letters, nor live provenance."""
    if "*" not in topics:
        return "subscribe", topics
    patterns = "|".join(".*".join(map(re.escape, one.split("*"))) for one in topics.split(","))
    return "subscribePattern", rf"(?!headwater\.receipts$)(?!headwater\.live\.)(?!.*\.rejected$)(?:{patterns})"


def _warm() -> None:
    from provenance_store.reduction.warm import warm_up  # noqa: PLC0415 - takes a second to import

    warm_up()


if __name__ == "__main__":
    sys.exit(main())
