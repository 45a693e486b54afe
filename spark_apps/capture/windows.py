"""Window functions in a column: what the rows they see add to a row's tokens.

A ranking function, and any frame without an end, sees its whole window partition: the partition is a group, and the
row depends on it. `lag` and `lead` see one other row: its tokens come along by the same function. Any other frame
gathers the tokens of its rows in an array.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from spark_apps.capture.plans import key_columns
from spark_apps.capture.tokens import Token, group_pair, token_columns

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun

_RANKING = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
_OFFSET = {"lag", "lead"}


def with_windows(
    run: "SparkRun", frame: DataFrame, tokens: Sequence[Token], columns: Sequence[Any]
) -> tuple[DataFrame, list[Token], int]:
    """The frame with the tokens that window functions in these columns need, all tokens then, and how many there are.

    A window function written as a text is not among them, which the caller sees by their number.
    """
    helper = run.jvm.Windows
    windows = [
        window for column in columns if isinstance(column, Column) for window in helper.__getattr__("in")(column._jc)
    ]
    added: list[Token] = []
    seen: set[str] = set()
    for window in windows:
        name = str(helper.function(window)).lower()
        if name in _OFFSET:
            what = f"{name} {window.sql()}"
        elif name in _RANKING or not helper.isBounded(window):
            what = f"partition {[str(column.toString()) for column in helper.partitionColumns(window)]}"
        else:
            what = f"frame {helper.describe(window)}"
        if what in seen:
            continue
        seen.add(what)
        if name in _OFFSET:
            frame = _by_offset(run, frame, tokens, window, added)
        elif what.startswith("partition"):
            frame = _by_partition(run, frame, tokens, window, added)
        else:
            frame = _by_frame(run, frame, tokens, window, added)
    return frame, [*tokens, *added], len(windows)


def _by_partition(
    run: "SparkRun", frame: DataFrame, tokens: Sequence[Token], window: Any, added: list[Token]
) -> DataFrame:
    partition = [Column(column) for column in run.jvm.Windows.partitionColumns(window)]
    keys = key_columns(frame, partition)
    tap, operation = run.group_tap("window")
    a, b = group_pair(operation, keys)
    token = Token.pair()
    added.append(token)
    told = frame.filter(F.call_function(tap, a, b, *token_columns(tokens)))
    return told.withColumns({token.a: a, str(token.b): b})


def _by_offset(
    run: "SparkRun", frame: DataFrame, tokens: Sequence[Token], window: Any, added: list[Token]
) -> DataFrame:
    made: dict[str, Column] = {}
    for token in tokens:
        new = token.renewed()
        added.append(new)
        for old_name, new_name in zip(token.names, new.names, strict=True):
            made[new_name] = Column(run.jvm.Windows.offset(F.col(old_name)._jc, window))
    return frame.withColumns(made)


def _by_frame(run: "SparkRun", frame: DataFrame, tokens: Sequence[Token], window: Any, added: list[Token]) -> DataFrame:
    made: dict[str, Column] = {}
    for token in tokens:
        new = Token.array()
        added.append(new)
        gathered = Column(run.jvm.Windows.over(F.collect_list(token.as_array())._jc, window))
        made[new.a] = F.flatten(gathered)
    return frame.withColumns(made)
