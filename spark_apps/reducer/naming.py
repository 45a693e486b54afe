"""Names that were left out as not needed, and are: of a run whose only records stand in messages that do not count."""

from pyspark.sql import SparkSession

from provenance_store.reduction.state import Part, State
from provenance_store.settings import Settings
from spark_apps.reducer.local import reduce_partitions
from spark_apps.reducer.stream import is_of
from spark_apps.session import kafka_source_options


def read_names_again(spark: SparkSession, settings: Settings, state: State, topic: str, run: str) -> list[Part]:
    """Parts with every name of the run, of what the topic still holds; no record counts them, so they are swept."""
    records = (
        spark.read.format("kafka")
        .options(**kafka_source_options(settings))
        .option("subscribe", topic)
        .option("endingOffsets", "latest")
        .load()
    )
    return reduce_partitions(records.filter(is_of(run)), state.folder, every_name=True)
