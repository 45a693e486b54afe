"""`python -m spark_apps.bench.streams --components N … [--events N] [--repeat N]`: chains on Structured Streaming.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each chain, or
`{"error": …, "kind": …}`. Each turn reads the same files from a new checkpoint into a lake of its own; Spark is started
once, and its first chain is not measured.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from provenance_store.bench.stream_chains import chain, write_events
from provenance_store.bench.stream_throughput import WAYS
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import Settings, load_settings
from spark_apps.session import open_session
from spark_apps.streams.job import StreamJob


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.streams")
    parser.add_argument("--components", type=int, action="append", required=True)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args(arguments)
    return tell_failure(lambda: _measure(given))


def _measure(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        settings = load_settings().model_copy(update={"home": Path(scratch), "lake": Path(scratch) / "lake"})
        write_events(settings.lake, given.events, 100)
        spark = open_session(settings, "headwater-bench-streams", [])
        try:
            _run(spark, settings, given.components[0], "none", "warm")
            for components in given.components:
                seconds: dict[str, list[float]] = {way: [] for way in WAYS}
                for turn in range(given.repeat):
                    for at, way in enumerate(WAYS):
                        tell_progress(f"Spark, {components} components, turn {turn + 1}: {way}")
                        seconds[way].append(_run(spark, settings, components, way, f"{components}-{turn}-{at}"))
                row = {"where": "Spark", "components": components, "work": 0.0, "events": given.events}
                tell(row={**row, "seconds": seconds})
        finally:
            spark.stop()


def _run(spark: SparkSession, settings: Settings, components: int, way: str, name: str) -> float:
    keep, capture = WAYS[way]
    job = StreamJob(spark, settings, chain(components), f"bench-{name}", keep=keep, capture=capture, batch=1)
    begin = time.perf_counter()
    job.catch_up()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
