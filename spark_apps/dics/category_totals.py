"""The second DIC of paper 003: how often the hashtags of each category occur, on Spark RDDs.

Reads `hashtag_counts` (`hashtag TAB count`, as the first DIC writes it) and `categories` (JSON lines: hashtag,
category), writes `category_totals` (`category TAB total`). A hashtag that the table does not know has no category.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import msgspec
from pyspark import RDD

from provenance_store.errors import HeadwaterError
from provenance_store.lake.layout import version_path
from provenance_store.settings import Settings, load_settings
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.rdd import TrackedRDD
from spark_apps.capture.run import RunResult
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.capture.writer import Policy
from spark_apps.session import open_session

DIC = "category-totals"
OUTPUT = "category_totals"

Lines = TypeVar("Lines", TrackedRDD, RDD[str])


class Category(msgspec.Struct):
    """A row of the table."""

    hashtag: str
    category: str


_decoder = msgspec.json.Decoder(Category)


def read_count(line: str) -> tuple[str, int]:
    """A hashtag and how often it occurs."""
    hashtag, _, count = line.rpartition("\t")
    return hashtag, int(count)


def read_category(line: str) -> tuple[str, str]:
    """A hashtag and its category."""
    row = _decoder.decode(line)
    return row.hashtag, row.category


def total(counts: Lines, categories: Lines) -> Lines:
    """The lines of the output from the lines of the inputs; the same for plain RDDs as for tracked ones."""
    return (
        counts.filter(bool)
        .map(read_count)
        .join(categories.filter(bool).map(read_category))
        .map(lambda pair: (pair[1][1], pair[1][0]))
        .reduceByKey(lambda one, other: one + other)
        .map(lambda pair: f"{pair[0]}\t{pair[1]}")
    )


def run(
    settings: Settings,
    *,
    run: str,
    counts: str = "hashtag_counts",
    categories: str = "categories",
    policy: Policy = "fail",
) -> RunResult:
    """Execute the DIC under capture on a Spark session of its own."""
    session = open_session(settings, f"headwater {DIC} {run}", capture_jars(settings, _say))

    def body(captured: SparkRun) -> None:
        total(captured.text(counts), captured.text(categories)).saveAsTextFile(OUTPUT)

    try:
        return run_spark(DIC, body, settings=settings, session=session, run=run, outputs=[OUTPUT], policy=policy)
    finally:
        session.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the arguments say; an error of ours is a sentence and exit code 1."""
    try:
        given = _parser().parse_args(arguments)
        settings = load_settings()
        if given.lake is not None:
            settings = settings.model_copy(update={"lake": given.lake})
        result = run(settings, run=given.run, counts=given.input, categories=given.categories, policy=given.policy)
        path = version_path(settings.lake, OUTPUT, given.run)
        sys.stdout.write(_as_json(result, path) if given.json else _as_sentence(result, path))
    except HeadwaterError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"headwater run {DIC}", description=f"Run {DIC} on Spark, captured.")
    parser.add_argument("--run", required=True, help="the run's id, and the name of the version it writes")
    parser.add_argument(
        "--input", default="hashtag_counts", help="counts, as dataset or dataset/version (default: hashtag_counts)"
    )
    parser.add_argument(
        "--categories", default="categories", help="the table, as dataset or dataset/version (default: categories)"
    )
    parser.add_argument("--lake", type=Path, help="the lake's root (default: the setting lake)")
    parser.add_argument(
        "--policy",
        choices=["fail", "degrade"],
        default="fail",
        help="when provenance cannot be sent: fail the job, or go on and let the account say partial",
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _as_json(result: RunResult, path: Path) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(result), "path": str(path)}).decode() + "\n"


def _as_sentence(result: RunResult, path: Path) -> str:
    lost = "" if result.manifest_sent else "; the manifest could NOT be sent, so its completeness is unknown"
    return (
        f"run {result.run}: {', '.join(result.outputs)} written to {path}; {result.messages} messages of "
        f"{result.writers} writers in topic {result.topic}, {result.seconds:.1f} s{lost}\n"
    )


if __name__ == "__main__":
    # By its name, so that workers import the functions instead of being sent a copy of this module.
    sys.exit(import_module("spark_apps.dics.category_totals").main())
