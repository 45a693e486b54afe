# ruff: noqa: N802, N803 - methods and parameters have the names that Spark gave them
"""RDDs with the lineage of their records: Spark's own methods, by the same names and with the same meaning.

A narrow chain (map, filter, flatMap…) only knows each value's token, and sends nothing. Where records come together,
each is told to be a member of its group before the shuffle, and the group's name follows from the key after it. A join
depends on pairs of records, so there the tokens travel with the values. What is not here is refused by name.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pyspark import RDD, StorageLevel
from pyspark.core.rdd import portable_hash
from pyspark.serializers import UTF8Deserializer

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX, file_prefix
from spark_apps.capture import rdd_feeds as feeds
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.files import places_of
from spark_apps.capture.rdd_base import LineageRDD, info_of
from spark_apps.capture.rdd_feeds import Function
from spark_apps.capture.rdd_output import save_lines
from spark_apps.session import VISIBILITY

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun


def read_text(run: "SparkRun", version: Version, min_partitions: int | None = None) -> "TrackedRDD":
    """The lines of a version; each is known by its file and the byte offset of its line, after decompression."""
    files = version.files()
    if not files:
        raise InputError(f"{version.reference} holds no files.")
    if any(file.suffix == ".bz2" for file in files):
        raise UnsupportedOperationError("reading bzip2", "Its lines have no offsets across splits; use gzip or zstd")
    info, session = info_of(run), run.spark
    known = {namespace: name for name, namespace in info.files.items()}
    jvm: Any = session._jvm
    names = jvm.java.util.HashMap()
    for file in files:
        prefix = file_prefix(version.dataset, version.name, str(file.relative_to(version.path)))
        namespace = LAKE_NAMESPACE + prefix[len(LAKE_PREFIX) :]
        name = known.get(namespace) or f"f{len(info.files)}"
        info.files[name] = namespace
        names.put(str(file), name)
    context = session.sparkContext
    reading = UTF8Deserializer(use_unicode=True)  # type: ignore[no-untyped-call]
    moved, partitions = places_of(run, version), min_partitions or context.defaultMinPartitions
    lines = run.jvm.Lines.texts(session._jsparkSession, names, moved, partitions)
    return TrackedRDD(run, RDD(lines, context, reading), feeds.texts)


def parallelize(run: "SparkRun", values: Iterable[Any], slices: int | None = None) -> "TrackedRDD":
    """Constants as an RDD: values that no record stands behind."""
    return TrackedRDD(run, run.spark.sparkContext.parallelize(values, slices), feeds.constants)


class TrackedRDD(LineageRDD):
    """An RDD whose records' lineage is known."""

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(RDD, name):
            raise UnsupportedOperationError(f"RDD.{name}", "What needs no lineage can be asked of `.untracked`")
        raise AttributeError(f"An RDD has no {name!r}.")

    @property
    def untracked(self) -> RDD[Any]:
        """The values as a plain RDD: to look at them, with `take` or `count`. What is made from it has no lineage."""
        return self._rdd.mapPartitionsWithIndex(feeds.AsValues(self._chain), self._keeps)

    def getNumPartitions(self) -> int:
        """As Spark's."""
        return self._rdd.getNumPartitions()

    # --- narrow operations

    def map(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        return self._then(feeds.Map(f), keeps=preservesPartitioning)

    def flatMap(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        self._decides("flatMap")
        return self._then(feeds.FlatMap(f), keeps=preservesPartitioning)

    def filter(self, f: Function) -> Self:
        """As Spark's."""
        self._decides("filter")
        return self._then(feeds.Filter(f), keeps=True)

    def mapValues(self, f: Function) -> Self:
        """As Spark's."""
        return self._then(feeds.Map(lambda pair: (pair[0], f(pair[1]))), keeps=True)

    def flatMapValues(self, f: Function) -> Self:
        """As Spark's."""
        self._decides("flatMapValues")
        return self._then(feeds.FlatMap(lambda pair: ((pair[0], value) for value in f(pair[1]))), keeps=True)

    def keyBy(self, f: Function) -> Self:
        """As Spark's."""
        return self._then(feeds.Map(lambda value: (f(value), value)))

    def keys(self) -> Self:
        """As Spark's."""
        return self._then(feeds.Map(lambda pair: pair[0]))

    def values(self) -> Self:
        """As Spark's."""
        return self._then(feeds.Map(lambda pair: pair[1]))

    def sample(self, withReplacement: bool, fraction: float, seed: int | None = None) -> Self:
        """As Spark's."""
        return self._narrow(self._tokened().sample(withReplacement, fraction, seed), feeds.tokened)

    def zipWithIndex(self) -> Self:
        """As Spark's, with the job that it runs first to count: what that tells is told again, and is the same."""
        return self._narrow(self._tokened().zipWithIndex(), feeds.numbered)

    def union(self, other: Self) -> Self:
        """As Spark's."""
        self._check(other)
        united = self._tokened().union(other._tokened())
        settled, told = self._settled and other._settled, self._told or other._told
        return self._new(united, feeds.tokened, settled=settled, told=told, grouped=self._grouped or other._grouped)

    def coalesce(self, numPartitions: int, shuffle: bool = False) -> Self:
        """As Spark's."""
        moved = self._tokened().coalesce(numPartitions, shuffle)
        # A shuffle that goes round by the order of arrival may deal otherwise when it is repeated.
        if shuffle:
            return self._new(moved, feeds.tokened, settled=False, grouped=self._grouped)
        return self._narrow(moved, feeds.tokened)

    def repartition(self, numPartitions: int) -> Self:
        """As Spark's."""
        return self.coalesce(numPartitions, shuffle=True)

    def cache(self) -> Self:
        """As Spark's."""
        return self.persist(StorageLevel.MEMORY_ONLY)

    def persist(self, storageLevel: StorageLevel = StorageLevel.MEMORY_ONLY) -> Self:
        """As Spark's."""
        if self._told and self._rdd.context.getConf().get(VISIBILITY, "false") != "true":
            # A task that fails after filling the cache is tried again from the cache: what it told would be lost.
            raise InputError(
                f"Caching what mapPartitions made is exact only with {VISIBILITY}=true: set it in [spark] conf."
            )
        if self._steps:
            self._rdd, self._feed, self._steps, self._keeps = self._tokened(), feeds.tokened, (), False
        self._rdd.persist(storageLevel)
        return self

    def unpersist(self, blocking: bool = False) -> Self:
        """As Spark's."""
        if not self._steps:  # else it was never cached, and what it was made from may be
            self._rdd.unpersist(blocking)
        return self

    # --- order

    def sortBy(
        self,
        keyfunc: Function,
        ascending: bool = True,
        numPartitions: int | None = None,
    ) -> Self:
        """As Spark's."""
        ordered = self._tokened().sortBy(lambda pair: keyfunc(pair[1]), ascending, numPartitions)
        return self._new(ordered, feeds.tokened, grouped=self._grouped)

    def sortByKey(
        self,
        ascending: bool = True,
        numPartitions: int | None = None,
        keyfunc: Function = lambda key: key,
    ) -> Self:
        """As Spark's."""
        ordered = self._keyed().sortByKey(ascending, numPartitions, keyfunc)  # type: ignore[arg-type]  # None as well
        return self._new(ordered, feeds.keyed, keeps=True, grouped=self._grouped)

    # --- groups

    def reduceByKey(
        self, func: Function, numPartitions: int | None = None, partitionFunc: Function = portable_hash
    ) -> Self:
        """As Spark's, combined on the map side too."""
        return self._group("reduceByKey", lambda rdd: rdd.reduceByKey(func, numPartitions, partitionFunc))

    def foldByKey(
        self, zeroValue: Any, func: Function, numPartitions: int | None = None, partitionFunc: Function = portable_hash
    ) -> Self:
        """As Spark's, combined on the map side too."""
        return self._group("foldByKey", lambda rdd: rdd.foldByKey(zeroValue, func, numPartitions, partitionFunc))

    def aggregateByKey(
        self,
        zeroValue: Any,
        seqFunc: Function,
        combFunc: Function,
        numPartitions: int | None = None,
        partitionFunc: Function = portable_hash,
    ) -> Self:
        """As Spark's, combined on the map side too."""
        return self._group(
            "aggregateByKey",
            lambda rdd: rdd.aggregateByKey(zeroValue, seqFunc, combFunc, numPartitions, partitionFunc),
        )

    def combineByKey(
        self,
        createCombiner: Function,
        mergeValue: Function,
        mergeCombiners: Function,
        numPartitions: int | None = None,
        partitionFunc: Function = portable_hash,
    ) -> Self:
        """As Spark's, combined on the map side too."""
        return self._group(
            "combineByKey",
            lambda rdd: rdd.combineByKey(createCombiner, mergeValue, mergeCombiners, numPartitions, partitionFunc),
        )

    def groupByKey(self, numPartitions: int | None = None, partitionFunc: Function = portable_hash) -> Self:
        """As Spark's."""
        return self._group("groupByKey", lambda rdd: rdd.groupByKey(numPartitions, partitionFunc))

    def groupBy(self, f: Function, numPartitions: int | None = None, partitionFunc: Function = portable_hash) -> Self:
        """As Spark's."""
        return self.keyBy(f).groupByKey(numPartitions, partitionFunc)

    def distinct(self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        self._decides("distinct")
        tapped, names = self._tell_members(self._run.operation("distinct"), whole=True)
        return self._new(tapped.distinct(numPartitions), feeds.DistinctValues(names), grouped=self._grouped)

    def cogroup(self, other: Self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        self._check(other)
        operation = self._run.operation("cogroup")
        left, names = self._tell_members(operation)
        right, _ = other._tell_members(operation)
        self._decides_by_key("cogroup", other)
        return self._new(left.cogroup(right, numPartitions), feeds.Groups(names), keeps=True, grouped=True)

    def mapPartitions(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        return self._map_partitions("mapPartitions", lambda _, values: f(values))

    def mapPartitionsWithIndex(self, f: Function, preservesPartitioning: bool = False) -> Self:
        """As Spark's."""
        return self._map_partitions("mapPartitionsWithIndex", f)

    # --- joins

    def join(self, other: Self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        return self._join(other, lambda left, right: left.join(right, numPartitions))

    def leftOuterJoin(self, other: Self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        return self._join(other, lambda left, right: left.leftOuterJoin(right, numPartitions))

    def rightOuterJoin(self, other: Self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        return self._join(other, lambda left, right: left.rightOuterJoin(right, numPartitions))

    def fullOuterJoin(self, other: Self, numPartitions: int | None = None) -> Self:
        """As Spark's."""
        return self._join(other, lambda left, right: left.fullOuterJoin(right, numPartitions))

    # --- writing

    def saveAsTextFile(self, dataset: str, compression: str | None = None) -> None:
        """A new version of a dataset, named after the run, a line a record; compressed with "gzip" if so said."""
        save_lines(self._run, info_of(self._run), self._rdd, self._chain, dataset=dataset, compression=compression)
