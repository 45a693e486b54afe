"""The hands of a purge: Spark's workers where there is much to write, this process where there is little."""

from collections.abc import Callable, Sequence
from functools import cached_property

from pyspark.sql import SparkSession

from provenance_store.lake.rewriting import rewrite
from provenance_store.purge.apply import Task
from spark_apps.purge.rerun import Rerun

# To write so many bytes takes less time than to start Spark.
_LITTLE = 256 << 20


class SparkEngine:
    """Rewrites files, a task each, and runs DICs again; Spark starts when it is needed first."""

    def __init__(self, open_session: Callable[[], SparkSession]) -> None:
        self._open_session = open_session

    @cached_property
    def rerun(self) -> Rerun:
        """Runs DICs again."""
        return Rerun(self._open_session)

    def rewrite(self, tasks: Sequence[Task]) -> None:
        """Write files of drafts, each as its edit says."""
        if sum((version.path / file).stat().st_size for version, file, _, _ in tasks) <= _LITTLE:
            for task in tasks:
                rewrite(*task)
        else:
            context = self._open_session().sparkContext
            context.parallelize(tasks, len(tasks)).foreach(lambda task: rewrite(*task))
