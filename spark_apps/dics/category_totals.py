"""The second DIC of paper 003: how often the hashtags of each category occur, on Spark RDDs.

Reads `hashtag_counts` (`hashtag TAB count`, as the first DIC writes it) and `categories` (JSON lines: hashtag,
category), writes `category_totals` (`category TAB total`). A hashtag that the table does not know has no category.
"""

import sys
from importlib import import_module
from typing import TypeVar

import msgspec
from pyspark import RDD

from spark_apps.capture.rdd import TrackedRDD
from spark_apps.capture.spark_job import SparkJob
from spark_apps.capture.spark_main import main
from spark_apps.capture.spark_run import SparkRun

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


def run(captured: SparkRun, inputs: list[str]) -> None:
    """Read, compute, write."""
    counts, categories = map(captured.text, inputs)
    total(counts, categories).saveAsTextFile("category_totals")


JOB = SparkJob(dic="category-totals", run=run, inputs=["hashtag_counts", "categories"], outputs=["category_totals"])

if __name__ == "__main__":
    # By its name, so that workers import the functions instead of being sent a copy of this module.
    sys.exit(main(import_module("spark_apps.dics.category_totals").JOB))
