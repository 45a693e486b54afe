"""Looking at the plans that Spark makes of a call, so that nothing unforeseen passes for a narrow operation."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

from spark_apps.capture.errors import UnsupportedOperationError

_NARROW = {"Project", "Filter", "Generate", "SubqueryAlias"}


def check_narrow(made: DataFrame, base: DataFrame, *, windows_followed: int = 0) -> None:
    """Refuse, by name, what is no narrow operation on `base`: an aggregate, a subquery, a window as text."""
    windows = 0
    for plan in _between(made, base):
        name = str(plan.nodeName())
        if name == "Window":
            windows += plan.windowExpressions().length()
        elif name not in _NARROW:
            advice = "Use groupBy().agg() instead" if name == "Aggregate" else ""
            raise UnsupportedOperationError(f"{name} within a column", advice)
        if any(_has_subquery(expression) for expression in _items(plan.expressions())):
            raise UnsupportedOperationError("a subquery within a column", "Join with it instead")
    if windows > windows_followed:
        raise UnsupportedOperationError(
            "a Window function written as text", "Write it with pyspark.sql.functions and pyspark.sql.Window"
        )


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


def _between(made: DataFrame, base: DataFrame) -> Iterator[Any]:
    """The plan's nodes from the top down to the base."""
    bottom = base._jdf.queryExecution().analyzed()
    pending = [made._jdf.queryExecution().analyzed()]
    while pending:
        plan = pending.pop()
        if not plan.fastEquals(bottom):
            yield plan
            pending.extend(_items(plan.children()))


def _has_subquery(expression: Any) -> bool:
    return "Subquery" in str(expression.getClass().getSimpleName()) or any(
        map(_has_subquery, _items(expression.children()))
    )


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.length())]
