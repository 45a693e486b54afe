"""Tables that are written to disk and read from there, so that neither memory nor plans grow with the lake."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession


class Spool:
    """A folder of such tables, each under a name of its own, or a number."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True)
        self._kept = 0

    def keep(self, frame: DataFrame, name: str = "") -> DataFrame:
        """A table of Spark's, as read from disk."""
        self._kept += 1
        path = str(self.folder / (name or str(self._kept)))
        frame.write.option("compression", "lz4").parquet(path)
        return self.spark.read.schema(frame.schema).parquet(path)

    def hand_over(self, columns: Mapping[str, Sequence[str] | pa.Array], name: str) -> DataFrame:
        """A table of this process for Spark; a column that is no array is of text."""
        arrays = [one if isinstance(one, pa.Array) else pa.array(one, pa.string()) for one in columns.values()]
        path = self.folder / f"{name}.parquet"
        pq.write_table(pa.table(arrays, names=list(columns)), path)
        return self.spark.read.parquet(str(path))


def write_table(frame: DataFrame, path: Path) -> DataFrame:
    """Write a result as a folder of Parquet files and nothing else; the table as read from there."""
    frame.write.parquet(str(path.absolute()))
    for other in path.iterdir():
        if other.suffix != ".parquet":  # checksums of Hadoop's local file system
            other.unlink()
    return frame.sparkSession.read.schema(frame.schema).parquet(str(path.absolute()))


def count_rows(folder: Path) -> int:
    """How many rows a table has that was written here, from what its files say of themselves."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
