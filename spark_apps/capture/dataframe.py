"""A DataFrame that knows its lineage: the methods people use, with Spark's own names and meaning.

Narrow operations carry the tokens of a row along; they cost a few bytes a row and nothing is sent. Where records come
together (groupBy, distinct, a window's partition, the right side of a semi join) each row is told to be a member of
its group before the shuffle, and the group's name, which follows from the key, stands for all of them afterwards: no
list of ids ever goes through a shuffle. What an output depends on is told when it is written.
Whatever is not here is refused by name.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql.types import DataType

from provenance_store.errors import InputError
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.plans import check_narrow, key_columns, type_of
from spark_apps.capture.tokens import PREFIX, Token, group_pair, token_columns, token_names
from spark_apps.capture.windows import with_windows
from spark_apps.session import VISIBILITY

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun

ColumnOrName = Column | str
_SEMI = {"semi", "leftsemi", "left_semi"}
_ANTI = {"anti", "leftanti", "left_anti"}


class TrackedFrame:
    """A DataFrame with the tokens of its rows."""

    def __init__(self, run: "SparkRun", frame: DataFrame, tokens: Sequence[Token]) -> None:
        self._run = run
        self._frame = frame
        self._tokens = tuple(tokens)

    # --- looking at it

    @property
    def columns(self) -> list[str]:
        """The user's columns."""
        return [name for name in self._frame.columns if not name.startswith(PREFIX)]

    @property
    def untracked(self) -> DataFrame:
        """The plain DataFrame, for looking at it; what is written from it has no provenance."""
        return self._frame.drop(*token_names(self._tokens))

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first rows."""
        self.untracked.show(n, truncate)

    def printSchema(self) -> None:  # noqa: N802 - Spark's name
        """Print the schema."""
        self.untracked.printSchema()

    def __getitem__(self, name: str) -> Column:
        if not isinstance(name, str):
            raise UnsupportedOperationError(f"df[{name!r}]", "Use filter or select")
        return self._frame[name]

    def __getattr__(self, name: str) -> Column:
        # A method that is not here must not be taken for a column of that name, nor the other way round.
        if not name.startswith("_") and name in self.columns:
            return self._frame[name]
        if hasattr(DataFrame, name):
            self._refuse(name)
        raise AttributeError(f"There is no column {name!r}; the columns are {', '.join(self.columns)}.")

    # --- narrow operations

    def select(self, *columns: ColumnOrName | list[ColumnOrName]) -> "TrackedFrame":
        """As Spark's; window functions in it are followed too."""
        return self._with_columns(_flat(columns), lambda frame, chosen: frame.select(*self._starred(chosen)))

    def selectExpr(self, *texts: str) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's; aggregates and window functions as text are refused."""
        return self.select(*(F.expr(text) if text.strip() != "*" else "*" for text in texts))

    def withColumn(self, name: str, column: Column) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's; window functions in it are followed too."""
        return self.withColumns({name: column})

    def withColumns(self, columns: dict[str, Column]) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's; window functions in it are followed too."""
        names = list(columns)
        return self._with_columns(
            list(columns.values()),
            lambda frame, made: frame.withColumns(dict(zip(names, made, strict=True))),
            keeps_tokens=True,
        )

    def withColumnRenamed(self, existing: str, new: str) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._narrow(self._frame.withColumnRenamed(existing, new))

    def toDF(self, *names: str) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._narrow(self._frame.toDF(*names, *token_names(self._tokens)))

    def drop(self, *columns: ColumnOrName) -> "TrackedFrame":
        """As Spark's."""
        return self._narrow(self._frame.drop(*columns))

    def filter(self, condition: ColumnOrName) -> "TrackedFrame":
        """As Spark's."""
        return self._narrow(self._frame.filter(condition))

    where = filter  # noqa: A003 - Spark's name

    def alias(self, name: str) -> "TrackedFrame":
        """As Spark's."""
        return self._narrow(self._frame.alias(name))

    def fillna(self, value: Any, subset: list[str] | None = None) -> "TrackedFrame":
        """As Spark's."""
        return self._narrow(self._frame.fillna(value, subset or self.columns))

    def dropna(self, how: str = "any", thresh: int | None = None, subset: list[str] | None = None) -> "TrackedFrame":
        """As Spark's."""
        return self._narrow(self._frame.dropna(how, thresh, subset or self.columns))

    def orderBy(self, *columns: Any, **options: Any) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._same(self._frame.orderBy(*columns, **options))

    sort = orderBy

    def sortWithinPartitions(self, *columns: Any, **options: Any) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._same(self._frame.sortWithinPartitions(*columns, **options))

    def repartition(self, *arguments: Any) -> "TrackedFrame":
        """As Spark's."""
        return self._same(self._frame.repartition(*arguments))

    def coalesce(self, partitions: int) -> "TrackedFrame":
        """As Spark's."""
        return self._same(self._frame.coalesce(partitions))

    def hint(self, name: str, *parameters: Any) -> "TrackedFrame":
        """As Spark's."""
        return self._same(self._frame.hint(name, *parameters))

    def cache(self) -> "TrackedFrame":
        """As Spark's; lost and computed again, its members are told again under the same names."""
        return self.persist()

    def persist(self, *arguments: Any) -> "TrackedFrame":
        """As Spark's."""
        if self._frame.sparkSession.sparkContext.getConf().get(VISIBILITY, "false") != "true":
            # A task that fails after filling the cache is tried again from the cache: what it told would be lost.
            raise InputError(f"Caching is exact only with {VISIBILITY}=true: set it where the session is made.")
        self._frame.persist(*arguments)
        return self

    def unpersist(self, blocking: bool = False) -> "TrackedFrame":
        """As Spark's."""
        self._frame.unpersist(blocking)
        return self

    def sample(self, *arguments: Any, **options: Any) -> "TrackedFrame":
        """As Spark's."""
        return self._same(self._frame.sample(*arguments, **options))

    def limit(self, number: int) -> "TrackedFrame":
        """As Spark's. Taking a record away can let another in, so the run is marked."""
        self._run.mark("limit")
        return self._same(self._frame.limit(number))

    def offset(self, number: int) -> "TrackedFrame":
        """As Spark's. Taking a record away moves the others up, so the run is marked."""
        self._run.mark("offset")
        return self._same(self._frame.offset(number))

    # --- records coming together

    def groupBy(self, *keys: ColumnOrName | list[ColumnOrName]) -> "TrackedGroups":  # noqa: N802 - Spark's name
        """As Spark's; an output depends on every record of its group."""
        return TrackedGroups(self._run, self, _flat(keys))

    groupby = groupBy

    def agg(self, *aggregates: Any) -> "TrackedFrame":
        """As Spark's, over all rows."""
        return self.groupBy().agg(*aggregates)

    def distinct(self) -> "TrackedFrame":
        """As Spark's; an output depends on every record that equals it."""
        return self.dropDuplicates()

    def dropDuplicates(self, subset: list[str] | None = None) -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's; an output depends on every record of its group."""
        names = subset or self.columns
        keys = [(self._frame[name], type_of(self._frame, name)) for name in names]
        tapped, operation = self._told_members("dropDuplicates", keys)
        unique = tapped.dropDuplicates(names)
        token = Token.pair()
        a, b = group_pair(operation, [(unique[name], kind) for name, (_, kind) in zip(names, keys, strict=True)])
        kept = unique.drop(*token_names(self._tokens))
        return TrackedFrame(self._run, kept.withColumns({token.a: a, str(token.b): b}), [token])

    drop_duplicates = dropDuplicates

    def union(self, other: "TrackedFrame") -> "TrackedFrame":
        """As Spark's: by position."""
        return self._union(other, lambda mine, theirs: mine.union(theirs))

    unionAll = union  # noqa: N815 - Spark's name

    def unionByName(self, other: "TrackedFrame", allowMissingColumns: bool = False) -> "TrackedFrame":  # noqa: N802, N803
        """As Spark's: by name."""
        return self._union(other, lambda mine, theirs: mine.unionByName(theirs, allowMissingColumns))

    def join(self, other: "TrackedFrame", on: Any = None, how: str = "inner") -> "TrackedFrame":
        """As Spark's, every kind of it; an output depends on the records that met in it."""
        kind = how.lower()
        right = other._renewed()
        if kind in _ANTI:
            self._run.mark("anti join")
            return self._same(self._frame.join(right._frame, on, how))
        if kind in _SEMI:
            return self._semi_join(right, on)
        return TrackedFrame(self._run, self._frame.join(right._frame, on, how), [*self._tokens, *right._tokens])

    def crossJoin(self, other: "TrackedFrame") -> "TrackedFrame":  # noqa: N802 - Spark's name
        """As Spark's."""
        right = other._renewed()
        return TrackedFrame(self._run, self._frame.crossJoin(right._frame), [*self._tokens, *right._tokens])

    # --- leaving

    def write(self, dataset: str, **options: Any) -> None:
        """Write a new version of a dataset: see `SparkRun.write`."""
        self._run.write(self, dataset, **options)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Name it, to be read again with `run.table(name)`."""
        self._run.name_view(name, self)

    # --- within

    def _refuse(self, name: str) -> NoReturn:
        raise UnsupportedOperationError(f"DataFrame.{name}")

    def _same(self, frame: DataFrame) -> "TrackedFrame":
        return TrackedFrame(self._run, frame, self._tokens)

    def _narrow(self, frame: DataFrame) -> "TrackedFrame":
        check_narrow(self._run, frame, self._frame)
        return self._same(frame)

    def _starred(self, columns: Sequence[Any]) -> list[Any]:
        spread: list[Any] = []
        for column in columns:
            spread.extend([self._frame[name] for name in self.columns] if _is_star(column) else [column])
        return spread

    def _with_columns(
        self,
        columns: list[Any],
        build: Callable[[DataFrame, list[Any]], DataFrame],
        *,
        keeps_tokens: bool = False,
    ) -> "TrackedFrame":
        base, tokens, windows = with_windows(self._run, self._frame, self._tokens, columns)
        plain = build(base, columns)
        # Before the tokens are added: an aggregate among the columns would refuse them with words of its own.
        check_narrow(self._run, plain, base, windows_followed=windows)
        made = plain if keeps_tokens else build(base, [*columns, *token_columns(tokens)])
        return TrackedFrame(self._run, made, tokens)

    def _told_members(self, name: str, keys: Sequence[tuple[Column, DataType]]) -> tuple[DataFrame, str]:
        """The frame with every row told to be a member of its group; and the operation that names the groups."""
        tap, operation = self._run.group_tap(name)
        a, b = group_pair(operation, keys)
        return self._frame.filter(F.call_function(tap, a, b, *token_columns(self._tokens))), operation

    def _union(self, other: "TrackedFrame", unite: Callable[[DataFrame, DataFrame], DataFrame]) -> "TrackedFrame":
        mine, theirs = list(self._tokens), list(other._tokens)
        if [token.b is None for token in mine] != [token.b is None for token in theirs]:
            return self._gathered()._union(other._gathered(), unite)
        tokens = [token.renewed() for token in mine]
        return TrackedFrame(self._run, unite(self._retold(tokens)._frame, other._retold(tokens)._frame), tokens)

    def _retold(self, tokens: Sequence[Token]) -> "TrackedFrame":
        names = dict(zip(token_names(self._tokens), token_names(tokens), strict=True))
        columns = [F.col(old).alias(new) for old, new in names.items()]
        mine = [self._frame[name] for name in self.columns]
        return TrackedFrame(self._run, self._frame.select(*mine, *columns), tokens)

    def _renewed(self) -> "TrackedFrame":
        return self._retold([token.renewed() for token in self._tokens])

    def _gathered(self) -> "TrackedFrame":
        """All tokens in one array, so that frames with different numbers of them can be united."""
        token = Token.array()
        gathered = F.concat(*(one.as_array() for one in self._tokens))
        frame = self._frame.withColumn(token.a, gathered).drop(*token_names(self._tokens))
        return TrackedFrame(self._run, frame, [token])

    def _semi_join(self, right: "TrackedFrame", on: Any) -> "TrackedFrame":
        names = [on] if isinstance(on, str) else on
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            return self._semi_join_by_condition(right, on)
        keys = [(right._frame[name], type_of(right._frame, name)) for name in names]
        if any(type_of(self._frame, name) != kind for name, (_, kind) in zip(names, keys, strict=True)):
            raise UnsupportedOperationError("a semi join of keys of different types", "Cast one side first")
        tapped, operation = right._told_members("semi join", keys)
        joined = self._frame.join(tapped, list(names), "left_semi")
        return self._with_group(
            joined, operation, [(joined[name], kind) for name, (_, kind) in zip(names, keys, strict=True)]
        )

    def _semi_join_by_condition(self, right: "TrackedFrame", on: Column) -> "TrackedFrame":
        """Which rights match follows from the left row alone, so equal left rows share a group.

        The pairs are found by a join of their own, because the semi join itself stops at the first match.
        """
        names = [*self.columns, *token_names(self._tokens)]
        kinds = [type_of(self._frame, name) for name in names]
        tap, operation = self._run.group_tap("semi join")
        pairs = self._frame.join(right._frame, on, "inner")
        a, b = group_pair(operation, [(self._frame[name], kind) for name, kind in zip(names, kinds, strict=True)])
        told = pairs.filter(F.call_function(tap, a, b, *token_columns(right._tokens)))
        self._run.tell(told)
        joined = self._frame.join(right._frame, on, "left_semi")
        return self._with_group(
            joined, operation, [(joined[name], kind) for name, kind in zip(names, kinds, strict=True)]
        )

    def _with_group(self, frame: DataFrame, operation: str, keys: Sequence[tuple[Column, DataType]]) -> "TrackedFrame":
        token = Token.pair()
        a, b = group_pair(operation, keys)
        return TrackedFrame(self._run, frame.withColumns({token.a: a, str(token.b): b}), [*self._tokens, token])


class TrackedGroups:
    """What `groupBy` gives: aggregates of groups."""

    def __init__(self, run: "SparkRun", frame: TrackedFrame, keys: list[ColumnOrName]) -> None:
        self._run = run
        self._of = frame
        self._keys = keys

    def agg(self, *aggregates: Any) -> TrackedFrame:
        """As Spark's."""
        keys = key_columns(self._of._frame, self._keys)
        tapped, operation = self._of._told_members("groupBy", keys)
        plain = [self._of._frame[key] if isinstance(key, str) else key for key in self._keys]
        made = tapped.groupBy(*plain).agg(*aggregates)
        token = Token.pair()
        outputs = [self._run.column_at(made, place) for place in range(len(keys))]
        a, b = group_pair(operation, [(column, kind) for column, (_, kind) in zip(outputs, keys, strict=True)])
        return TrackedFrame(self._run, made.withColumns({token.a: a, str(token.b): b}), [token])

    def count(self) -> TrackedFrame:
        """As Spark's."""
        return self.agg(F.count(F.lit(1)).alias("count"))

    def _each(self, function: Callable[[str], Column], name: str, columns: Sequence[str]) -> TrackedFrame:
        if not columns:
            raise UnsupportedOperationError(f"groupBy().{name}() of all columns", "Name the columns")
        return self.agg(*(function(column).alias(f"{name}({column})") for column in columns))

    def sum(self, *columns: str) -> TrackedFrame:
        """As Spark's, of named columns."""
        return self._each(F.sum, "sum", columns)

    def avg(self, *columns: str) -> TrackedFrame:
        """As Spark's, of named columns."""
        return self._each(F.avg, "avg", columns)

    def min(self, *columns: str) -> TrackedFrame:
        """As Spark's, of named columns."""
        return self._each(F.min, "min", columns)

    def max(self, *columns: str) -> TrackedFrame:
        """As Spark's, of named columns."""
        return self._each(F.max, "max", columns)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedOperationError(f"groupBy().{name}")


def _flat(columns: Iterable[Any]) -> list[Any]:
    """Spark takes columns one by one or as one list."""
    return [one for column in columns for one in (column if isinstance(column, list | tuple) else [column])]


def _is_star(column: Any) -> bool:
    return isinstance(column, str) and column == "*"
