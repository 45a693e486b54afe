"""Python tasks on Spark's workers."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_apps.settling import settle


def do_on_workers(spark: SparkSession, task: Callable[[int], int], tasks: int) -> list[int]:
    """What a task comes to for each of so many numbers, by the workers that also take Arrow tables."""

    def do(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = [task(number) for number in batch.column("id").to_pylist()]
            settle()
            yield pa.RecordBatch.from_pydict({"id": batch.column("id"), "done": pa.array(done, pa.int64())})

    table = spark.range(0, tasks, 1, max(1, tasks)).mapInArrow(do, "id long, done long").toArrow()
    return [int(done) for done in table.column("done").to_pylist()]
