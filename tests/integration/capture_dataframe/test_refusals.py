"""What is not captured exactly is refused at the call, by name."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.errors import InputError, JobError
from provenance_store.lake import layout
from provenance_store.settings import Settings
from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.spark_run import SparkRun
from tests.integration.capture_dataframe.conftest import Capture

REFUSED: dict[str, tuple[Callable[[TrackedFrame], Any], str]] = {
    "intersect": (lambda f: f.intersect(f), "DataFrame.intersect"),
    "subtract": (lambda f: f.subtract(f), "DataFrame.subtract"),
    "mapInPandas": (lambda f: f.mapInPandas(print, "a int"), "DataFrame.mapInPandas"),
    "rollup": (lambda f: f.rollup("status"), "DataFrame.rollup"),
    "pivot": (lambda f: f.groupBy("status").pivot("status"), "groupBy.*pivot"),
    "sum of all columns": (lambda f: f.groupBy("status").sum(), "sum"),
    "aggregate in select": (lambda f: f.select(F.sum("cents")), r"Aggregate.*groupBy\(\)\.agg"),
    "window as text": (lambda f: f.select(F.expr("sum(cents) over (partition by status)")), "Window"),
    "windows of both kinds": (
        lambda f: f.withColumn(
            "x", F.expr("sum(cents) over (partition by day)") + F.sum("cents").over(Window.partitionBy("status"))
        ),
        "Window",
    ),
    "window in withColumn as text": (
        lambda f: f.withColumn("x", F.expr("rank() over (partition by status order by cents)")),
        "Window",
    ),
    "subquery": (lambda f: f.filter("cents > (select 1)"), "subquery"),
    "random key": (lambda f: f.groupBy(F.rand()).count(), "random key"),
    "semi join of other types": (
        lambda f: f.join(f.select(F.col("customer_id").cast("string")), "customer_id", "left_semi"),
        "different types",
    ),
    "slice of columns": (lambda f: f[["status"]], "select"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_by_name(capture: Capture, case: str) -> None:
    call, name = REFUSED[case]
    with pytest.raises(UnsupportedOperationError, match=name):
        capture(lambda run: call(run.read("orders")))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"format": "orc"}, "orc"),
        ({"format": "csv", "header": True}, "header"),
        ({"format": "jsonl", "compression": "bzip2"}, "bzip2"),
    ],
)
def test_outputs_without_ids_are_refused(capture: Capture, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=reason):
        capture(lambda run: run.read("orders").write("out", **options))


@pytest.mark.parametrize("options", [{"format": "csv", "header": True}, {"format": "jsonl", "multiLine": True}])
def test_inputs_without_ids_are_refused(capture: Capture, options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOperationError, match="must be a line of its own"):
        capture(lambda run: run.read("orders", **options).write("out"))


def test_an_attribute_that_is_no_column_says_which_there_are(capture: Capture) -> None:
    with pytest.raises(AttributeError, match=r"no column 'price'; the columns are order_id, customer_id"):
        capture(lambda run: run.read("orders").price)


def test_outputs_must_be_those_declared(capture: Capture, shop: Settings) -> None:
    with pytest.raises(InputError, match="declares the outputs out and wrote other"):
        capture(lambda run: run.read("orders").write("other"))
    assert layout.list_versions(shop.lake, "other") == []


def test_a_line_break_in_a_text_is_refused(capture: Capture, shop: Settings) -> None:
    def body(run: SparkRun) -> None:
        run.read("orders").select(F.lit("two\nlines").alias("value")).write("out", format="text")

    with pytest.raises(JobError, match="taken for two records"):
        capture(body)
    assert layout.list_versions(shop.lake, "out") == []


def test_a_finished_run_is_not_done_twice(capture: Capture) -> None:
    def body(run: SparkRun) -> None:
        run.read("orders").filter("cents > 30000").write("out")

    def never(run: SparkRun) -> None:
        raise AssertionError("the body of a finished run was called")

    done = capture(body)
    assert capture(never) == done
