"""Looking at the plans that Spark makes of a call, so that nothing unforeseen passes for a narrow operation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

from spark_apps.capture.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun


def check_narrow(run: "SparkRun", made: DataFrame, base: DataFrame, *, windows_followed: int = 0) -> None:
    """Refuse, by name, what is no narrow operation on `base`: an aggregate, a subquery, a window as text."""
    name = str(run.jvm.Plans.notNarrow(made._jdf, base._jdf, windows_followed))
    if name == "Subquery":
        raise UnsupportedOperationError("a subquery within a column", "Join with it instead")
    if name == "Window":
        raise UnsupportedOperationError(
            "a Window function written as text", "Write it with pyspark.sql.functions and pyspark.sql.Window"
        )
    if name:
        advice = "Use groupBy().agg() instead" if name == "Aggregate" else ""
        raise UnsupportedOperationError(f"{name} within a column", advice)


def type_of(frame: DataFrame, name: str) -> DataType:
    """The type of a column."""
    return frame.select(frame[name]).schema.fields[0].dataType


def key_columns(frame: DataFrame, keys: Sequence[Column | str]) -> list[tuple[Column, DataType]]:
    """The keys of a grouping with their types; one that is drawn anew at each evaluation is refused."""
    columns = [frame[key] if isinstance(key, str) else key for key in keys]
    if not columns:
        return []
    chosen = frame.select(*columns)
    analysed = chosen._jdf.queryExecution().analyzed()
    if not all(expression.deterministic() for expression in _items(analysed.expressions())):
        raise UnsupportedOperationError("grouping by a random key", "Compute it with withColumn and cache() first")
    return list(zip(columns, (field.dataType for field in chosen.schema.fields), strict=True))


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.length())]
