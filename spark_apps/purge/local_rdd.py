# ruff: noqa: N802, N803 - methods and parameters have the names that Spark gave them
"""RDDs of this process: what a Spark DIC does with few lines, without Spark, whose start alone takes far longer.

Only methods whose result does not depend on how Spark parts the lines are here, with the meaning that Spark gives them.
As there, nothing is computed before it is written, and each time anew. A DIC that asks for anything else needs Spark.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self

from pyspark import join
from pyspark.resultiterable import ResultIterable

from provenance_store.lake import layout
from provenance_store.lake.contents import all_lines
from provenance_store.settings import Settings
from spark_apps.capture.rdd_taps import as_line

Function = Callable[..., Any]
_joins: Any = join  # whose functions have no types
_FILES: dict[str | None, tuple[str, Function]] = {
    None: ("part-00000.txt", open),
    "none": ("part-00000.txt", open),
    "gzip": ("part-00000.txt.gz", partial(gzip.open, compresslevel=6)),
}


class NeedsSparkError(Exception):
    """What the DIC asks for is not here."""


class LocalRun:
    """What a DIC is given in place of a captured run on Spark: `text`."""

    def __init__(self, settings: Settings, run: str) -> None:
        self.settings = settings
        self.outputs: list[tuple[layout.Version, Path]] = []
        self._run = run
        self._lacks = False

    def __getattr__(self, name: str) -> NoReturn:
        self.lack(name)

    def lack(self, what: str) -> NoReturn:
        """Say that Spark is needed; remembered, because the DIC may catch what it likes."""
        self._lacks = True
        raise NeedsSparkError(what)

    def text(self, reference: str) -> "LocalRDD":
        """The lines of a version."""
        version = layout.resolve(self.settings.lake, reference)
        if not version.files():
            self.lack("an input without files")
        return LocalRDD(self, lambda: _lines(version))

    def save(self, lines: Iterable[bytes], dataset: str, compression: str | None) -> None:
        """Write a version beside its name."""
        version = layout.version_of(self.settings.lake, dataset, self._run)
        layout.refuse_existing(version)
        unfinished = layout.unfinished_path(version)
        unfinished.mkdir(parents=True)
        self.outputs.append((version, unfinished))
        name, opened = _FILES[compression]
        with opened(unfinished / name, "wb") as file:
            file.writelines(line + b"\n" for line in lines)

    def publish(self, declared: Sequence[str]) -> None:
        """Let what was written be versions, if it is what the DIC declares."""
        if self._lacks or sorted(declared) != sorted(version.dataset for version, _ in self.outputs):
            self.lack("what it caught, or did not declare")
        for version, unfinished in self.outputs:
            layout.publish(unfinished, version, {})


class LocalRDD:
    """The values of all partitions, computed whenever they are asked for."""

    def __init__(self, run: LocalRun, values: Callable[[], Iterator[Any]]) -> None:
        self._run = run
        self._values = values

    def __getattr__(self, name: str) -> NoReturn:
        self._run.lack(f"RDD.{name}")

    def _then(self, values: Callable[[Iterator[Any]], Iterator[Any]]) -> Self:
        return type(self)(self._run, lambda: values(self._values()))

    # --- narrow operations

    def map(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        return self._then(lambda values: map(f, values))

    def flatMap(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        return self._then(lambda values: (made for value in values for made in f(value)))

    def filter(self, f: Function) -> Self:
        """As Spark's."""
        return self._then(lambda values: filter(f, values))

    def mapValues(self, f: Function) -> Self:
        """As Spark's."""
        return self.map(lambda pair: (pair[0], f(pair[1])))

    def flatMapValues(self, f: Function) -> Self:
        """As Spark's."""
        return self.flatMap(lambda pair: ((pair[0], value) for value in f(pair[1])))

    def keyBy(self, f: Function) -> Self:
        """As Spark's."""
        return self.map(lambda value: (f(value), value))

    def keys(self) -> Self:
        """As Spark's."""
        return self.map(lambda pair: pair[0])

    def values(self) -> Self:
        """As Spark's."""
        return self.map(lambda pair: pair[1])

    def union(self, other: Self) -> Self:
        """As Spark's."""
        return self._then(lambda values: (value for part in (values, other._values()) for value in part))

    def cache(self) -> Self:
        """As Spark's, which may forget at any time."""
        return self

    # --- groups

    def combineByKey(
        self,
        createCombiner: Function,
        mergeValue: Function,
        mergeCombiners: Function,
        numPartitions: int | None = None,
        partitionFunc: Function | None = None,
    ) -> Self:
        """As Spark's of one partition, where there are no combiners to merge."""

        def combined(pairs: Iterator[Any]) -> Iterator[Any]:
            combiners: dict[Any, Any] = {}
            for key, value in pairs:
                combiners[key] = mergeValue(combiners[key], value) if key in combiners else createCombiner(value)
            return iter(combiners.items())

        return self._then(combined)

    def reduceByKey(
        self, func: Function, numPartitions: int | None = None, partitionFunc: Function | None = None
    ) -> Self:
        """As Spark's."""
        return self.combineByKey(lambda value: value, func, func)

    def foldByKey(
        self, zeroValue: Any, func: Function, numPartitions: int | None = None, partitionFunc: Function | None = None
    ) -> Self:
        """As Spark's."""
        return self.aggregateByKey(zeroValue, func, func)

    def aggregateByKey(
        self,
        zeroValue: Any,
        seqFunc: Function,
        combFunc: Function,
        numPartitions: int | None = None,
        partitionFunc: Function | None = None,
    ) -> Self:
        """As Spark's."""
        return self.combineByKey(lambda value: seqFunc(deepcopy(zeroValue), value), seqFunc, combFunc)

    def groupByKey(self, numPartitions: int | None = None, partitionFunc: Function | None = None) -> Self:
        """As Spark's."""

        def append(group: list[Any], value: Any) -> list[Any]:
            group.append(value)
            return group

        return self.combineByKey(lambda value: [value], append, append).mapValues(ResultIterable)

    def groupBy(self, f: Function, numPartitions: int | None = None, partitionFunc: Function | None = None) -> Self:
        """As Spark's."""
        return self.keyBy(f).groupByKey()

    def distinct(self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        return self._then(lambda values: iter(dict.fromkeys(values)))

    # --- joins, by Spark's own functions, which ask no more of an RDD than is here

    def cogroup(self, other: Self, numPartitions: int | None = None) -> Any:
        """As Spark's."""
        return _joins.python_cogroup((self, other), numPartitions)

    def join(self, other: Self, numPartitions: int | None = None) -> Any:
        """As Spark's."""
        return _joins.python_join(self, other, numPartitions)

    def leftOuterJoin(self, other: Self, numPartitions: int | None = None) -> Any:
        """As Spark's."""
        return _joins.python_left_outer_join(self, other, numPartitions)

    def rightOuterJoin(self, other: Self, numPartitions: int | None = None) -> Any:
        """As Spark's."""
        return _joins.python_right_outer_join(self, other, numPartitions)

    def fullOuterJoin(self, other: Self, numPartitions: int | None = None) -> Any:
        """As Spark's."""
        return _joins.python_full_outer_join(self, other, numPartitions)

    # --- writing

    def saveAsTextFile(self, dataset: str, compression: str | None = None) -> None:
        """A new version of a dataset, named after the run, a line a record."""
        self._run.save(map(as_line, self._values()), dataset, compression)


def _lines(version: layout.Version) -> Iterator[str]:
    for file in version.files():
        for _, lines in all_lines(version, version.name_of(file)):
            for line in lines:
                yield line.decode()  # what is not UTF-8, Java reads in its own way
