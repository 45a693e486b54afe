"""How a tracked RDD is made of a plain one: what Spark stores, how its tokens are found, what is still to be done.

Steps of a narrow chain are only gathered; they are executed by whatever stands at the end of the chain, in one loop.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from pyspark import RDD

from provenance_store.errors import InputError
from spark_apps.capture import rdd_feeds as feeds
from spark_apps.capture.rdd_feeds import Chain, Feed, Function, Step
from spark_apps.capture.rdd_keys import GroupNames
from spark_apps.capture.rdd_sinks import SinkAddress
from spark_apps.capture.rdd_taps import TellMembers, TellPartition
from spark_apps.capture.rdd_writer import ReceiptsParam, TaskInfo

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun

_infos: "WeakKeyDictionary[SparkRun, TaskInfo]" = WeakKeyDictionary()


def info_of(run: "SparkRun") -> TaskInfo:
    """What tasks need to know of the run; the same for all its RDDs."""
    info = _infos.get(run)
    if info is None:
        settings, context = run.settings, run.context
        receipts = run.spark.sparkContext.accumulator({}, ReceiptsParam())
        secret = blake2b(context.run.encode(), key=settings.hmac_key(), digest_size=16).digest()
        address = SinkAddress.of(settings, context.topic, context.policy)
        info = TaskInfo(context.run, context.dic, address, run.nonce, secret, receipts, {})
        _infos[run] = info
        run.add_receipts(lambda: dict(receipts.value))
    return info


class LineageRDD:
    """A plain RDD with a feed that knows its tokens, and the steps of the narrow chain after it."""

    def __init__(
        self,
        run: "SparkRun",
        rdd: RDD[Any],
        feed: Feed,
        steps: tuple[Step, ...] = (),
        *,
        keeps: bool = False,
        settled: bool = True,
        told: bool = False,
        grouped: bool = False,
    ) -> None:
        self._run = run
        self._rdd = rdd
        self._feed = feed
        self._steps = steps
        self._keeps = keeps  # the values' keys are still those that Spark partitioned by
        self._settled = settled  # computing a partition again gives the same records, if in another order
        self._told = told  # something is told on the way from the last shuffle to here
        self._grouped = grouped  # values were made of several records, and change when one of them goes

    @property
    def _chain(self) -> Chain:
        return Chain(self._feed, self._steps)

    def _new(
        self,
        rdd: RDD[Any],
        feed: Feed,
        steps: tuple[Step, ...] = (),
        *,
        keeps: bool = False,
        settled: bool = True,
        told: bool = False,
        grouped: bool = False,
    ) -> Self:
        return type(self)(self._run, rdd, feed, steps, keeps=keeps, settled=settled, told=told, grouped=grouped)

    def _then(self, step: Step, *, keeps: bool = False) -> Self:
        return self._new(
            self._rdd,
            self._feed,
            (*self._steps, step),
            keeps=keeps and self._keeps,
            settled=self._settled,
            told=self._told,
            grouped=self._grouped,
        )

    def _narrow(self, rdd: RDD[Any], feed: Feed) -> Self:
        return self._new(rdd, feed, settled=self._settled, told=self._told, grouped=self._grouped)

    def _tokened(self) -> RDD[Any]:
        """Pairs of a token and a value."""
        if self._feed is feeds.tokened and not self._steps:
            return self._rdd
        return self._rdd.mapPartitionsWithIndex(feeds.AsTokened(self._chain))

    def _keyed(self) -> RDD[Any]:
        """Pairs of a key and a value with its token."""
        if self._feed is feeds.keyed and not self._steps:
            return self._rdd
        return self._rdd.mapPartitionsWithIndex(feeds.AsKeyed(self._chain), self._keeps)

    def _tell_members(self, operation: str, *, whole: bool = False) -> tuple[RDD[Any], GroupNames]:
        info = info_of(self._run)
        names = GroupNames(info.secret, operation)
        tap = TellMembers(info, operation, names, self._chain, whole=whole)
        return self._rdd.mapPartitionsWithIndex(tap, self._keeps), names

    def _group(self, name: str, shuffle: Callable[[RDD[Any]], RDD[Any]]) -> Self:
        self._decides_by_key(name)
        tapped, names = self._tell_members(self._run.operation(name))
        return self._new(shuffle(tapped), feeds.Groups(names), keeps=True, grouped=True)

    def _map_partitions(self, name: str, function: Function) -> Self:
        info, operation = info_of(self._run), self._run.operation(name)
        names = GroupNames(info.secret, operation)
        tap = TellPartition(info, operation, names, self._chain, function, settled=self._settled)
        made = self._rdd.mapPartitionsWithIndex(tap)
        return self._new(made, feeds.tokened, settled=self._settled, told=True, grouped=True)

    def _join(self, other: Self, shuffle: Callable[[RDD[Any], RDD[Any]], RDD[Any]]) -> Self:
        self._check(other)
        self._decides_by_key("join", other)
        joined = shuffle(self._keyed(), other._keyed())
        return self._new(joined, feeds.joined, keeps=True, grouped=self._grouped or other._grouped)

    def _decides(self, operation: str) -> None:
        """Mark the run where values made of several records decide which outputs there are.

        Taking one of the records away may then make outputs that were not there, which no dependency shows. Whether
        the function looks at such a value is not known, so it is taken to.
        """
        if self._grouped:
            self._run.mark(f"{operation} of an aggregate")

    def _decides_by_key(self, operation: str, *others: "LineageRDD") -> None:
        """The same where keys decide; the key of a group does not change with its records, until it is mapped."""
        if any(one._grouped and not one._keeps for one in (self, *others)):
            self._run.mark(f"{operation} by an aggregate")

    def _check(self, other: object) -> None:
        if not isinstance(other, LineageRDD) or other._run is not self._run:
            raise InputError(
                "Both RDDs must be of one captured run: read the other with `run.text`, or make constants with "
                "`parallelize(run, …)`."
            )
