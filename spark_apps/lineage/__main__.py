"""`python -m spark_apps.lineage backward|forward --starts FILE --out DIR [--to DATASET] [--depth N] REDUCED…`.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"finished": FOLDER}`, or
`{"error": …, "kind": …}`.
"""

import argparse
import sys
from pathlib import Path

from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import load_settings
from spark_apps.lineage.app import run
from spark_apps.lineage.question import BulkQuestion
from spark_apps.lineage.starts import read_starts
from spark_apps.session import open_session


def main(arguments: list[str] | None = None) -> int:
    """Trace from many records at once; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.lineage")
    parser.add_argument("direction", choices=["backward", "forward"])
    parser.add_argument("reduced", nargs="+", type=Path, help="folders of reduced graphs, or that hold such folders")
    parser.add_argument("--starts", required=True, type=Path, help="a file of record ids: a line each, or Parquet")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--to", help="keep only records of this dataset")
    parser.add_argument("--depth", type=int, help="go at most this many steps")
    parser.add_argument("--ends", action="store_true", help="keep only where it all began, or ended")
    parser.add_argument("--edges", action="store_true", help="write the dependencies that were crossed, too")
    chosen = parser.parse_args(arguments)
    return tell_failure(lambda: _trace(chosen))


def _trace(chosen: argparse.Namespace) -> None:
    settings = load_settings()
    question = BulkQuestion(chosen.direction, chosen.depth, chosen.to, chosen.ends, chosen.edges)
    starts = read_starts(chosen.starts)
    tell_progress("starting Spark")
    spark = open_session(settings, "headwater-trace", [])
    try:
        run(spark, question, starts=starts, reduced=chosen.reduced, out=chosen.out, say=tell_progress)
        tell(finished=str(chosen.out))
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
