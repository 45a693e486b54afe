"""A report that a shop would run, on DataFrames: totals per country, and each country's largest orders.

Reads `orders` and `customers` (Parquet); writes `country_totals` (Parquet: country, orders, customers, cents) and
`top_orders` (JSON lines: country, place, order_id, cents). Cancelled orders and unconfirmed customers do not count.
"""

import sys

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.spark_job import SparkJob
from spark_apps.capture.spark_main import main
from spark_apps.capture.spark_run import SparkRun

LARGEST = 3


def build(orders: TrackedFrame, customers: TrackedFrame) -> tuple[TrackedFrame, TrackedFrame]:
    """The two outputs from the two inputs."""
    sold = orders.filter(F.col("status") != "cancelled").join(
        customers.filter("confirmed").select("customer_id", "country"), "customer_id"
    )
    totals = sold.groupBy("country").agg(
        F.count("*").alias("orders"),
        F.count_distinct("customer_id").alias("customers"),
        F.sum("cents").alias("cents"),
    )
    place = F.row_number().over(Window.partitionBy("country").orderBy(F.desc("cents"), "order_id"))
    top = sold.withColumn("place", place).filter(F.col("place") <= LARGEST)
    return totals, top.select("country", "place", "order_id", "cents")


def run(captured: SparkRun, inputs: list[str]) -> None:
    """Read, compute, write."""
    orders, customers = map(captured.read, inputs)
    totals, top = build(orders, customers)
    totals.write("country_totals")
    top.write("top_orders", format="jsonl")


JOB = SparkJob(dic="order-report", run=run, inputs=["orders", "customers"], outputs=["country_totals", "top_orders"])

if __name__ == "__main__":
    sys.exit(main(JOB))
