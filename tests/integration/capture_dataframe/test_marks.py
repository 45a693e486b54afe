"""Operations where taking a record away can make new outputs are marked on their run; others are not."""

from collections.abc import Callable

import pytest
from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.reduction.exact import Reduced
from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.spark_run import SparkRun
from tests.integration.capture_dataframe.conftest import Capture

Frames = tuple[TrackedFrame, TrackedFrame]


def place() -> Column:
    return F.row_number().over(Window.partitionBy("status").orderBy("cents", "order_id"))


MARKED: dict[str, tuple[Callable[[Frames], TrackedFrame], list[str]]] = {
    "filter on a key": (lambda f: f[0].groupBy("status").count().filter("status != 'paid'"), []),
    "aggregate carried along": (lambda f: f[0].groupBy("status").count().withColumn("n", F.col("count") * 2), []),
    "filter before": (lambda f: f[0].filter("cents > 900").groupBy("status").agg(F.sum("cents")), []),
    "join on a key": (lambda f: f[0].groupBy("customer_id").count().join(f[1], "customer_id"), []),
    "distinct of plain columns": (lambda f: f[0].select("status").distinct().filter("status > 'q'"), []),
    "having": (lambda f: f[0].groupBy("status").count().filter("count > 3"), ["filter on an aggregate"]),
    "having, renamed": (
        lambda f: f[0].groupBy("status").count().select((F.col("count") + 1).alias("n")).filter("n > 3"),
        ["filter on an aggregate"],
    ),
    "top-n by window": (lambda f: f[0].withColumn("p", place()).filter("p <= 3"), ["filter on an aggregate"]),
    "having after a union": (
        lambda f: f[0].groupBy("status").count().union(f[0].groupBy("status").count()).filter("count > 3"),
        ["filter on an aggregate"],
    ),
    "count of counts": (
        lambda f: f[0].groupBy("customer_id").count().groupBy("count").agg(F.sum("count").alias("n")),
        ["groupBy an aggregate"],
    ),
    "join on a count": (
        lambda f: f[0].groupBy("status").count().join(f[1], F.col("count") == F.col("customer_id")),
        ["join on an aggregate"],
    ),
    "distinct counts": (
        lambda f: f[0].groupBy("customer_id").count().select("count").distinct(),
        ["distinct of an aggregate"],
    ),
    "limit": (lambda f: f[0].orderBy("cents").limit(3), ["limit"]),
    "anti join": (lambda f: f[0].join(f[1], "customer_id", "left_anti"), ["anti join"]),
}


@pytest.mark.parametrize("case", MARKED)
def test_marks(capture: Capture, reduced: Callable[[], Reduced], case: str) -> None:
    build, marks = MARKED[case]

    def body(run: SparkRun) -> None:
        build((run.read("orders"), run.read("customers"))).write("out")

    capture(body)
    assert reduced().account.marks == marks
    assert reduced().account.verdict == "complete"
