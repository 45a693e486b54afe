"""RDDs of this process give what Spark's give, whatever is done with them."""

from collections import Counter
from operator import add
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from provenance_store.settings import Settings
from spark_apps.purge.local_rdd import LocalRDD, LocalRun

keys = st.one_of(st.sampled_from(["a", "b", "ü"]), st.integers(0, 3), st.sampled_from([True, 1.0, None, ("a", 1)]))
pairs = st.lists(st.tuples(keys, st.integers(-3, 3)), max_size=8)


def append(numbers: list[int], number: int) -> list[int]:
    numbers.append(number)  # in place: a zero that were shared would show
    return numbers


def spread(either: tuple[Any, Any]) -> int:
    left, right = (7 if one is None else one for one in either)
    return left * 10 + right


# Each makes pairs of a key and a number from such pairs.
OPERATIONS = {
    "map": lambda rdd, _: rdd.map(lambda pair: (pair[0], -pair[1])),
    "flatMap": lambda rdd, _: rdd.flatMap(lambda pair: [pair] * (pair[1] % 3)),
    "filter": lambda rdd, _: rdd.filter(lambda pair: pair[1]),
    "mapValues": lambda rdd, _: rdd.mapValues(lambda number: number + 1),
    "flatMapValues": lambda rdd, _: rdd.flatMapValues(range),
    "keyBy": lambda rdd, _: rdd.keyBy(lambda pair: pair[1] % 2).mapValues(lambda pair: pair[1]),
    "keys": lambda rdd, _: rdd.keys().map(lambda key: (key, 1)),
    "values": lambda rdd, _: rdd.values().map(lambda number: (number, number)),
    "union": lambda rdd, other: rdd.union(other),
    "cache": lambda rdd, _: rdd.cache(),
    "combineByKey": lambda rdd, _: rdd.combineByKey(lambda one: [one], append, add).mapValues(sum),
    "reduceByKey": lambda rdd, _: rdd.reduceByKey(add),
    "foldByKey": lambda rdd, _: rdd.foldByKey(0, add),
    "aggregateByKey": lambda rdd, _: rdd.aggregateByKey([], append, add).mapValues(len),
    "groupByKey": lambda rdd, _: rdd.groupByKey(numPartitions=2).mapValues(lambda group: sum(group) + len(group)),
    "groupBy": lambda rdd, _: rdd.groupBy(lambda pair: pair[1] % 2).mapValues(len),
    "distinct": lambda rdd, _: rdd.distinct(),
    "cogroup": lambda rdd, other: rdd.cogroup(other).mapValues(lambda groups: spread([len(one) for one in groups])),
    "join": lambda rdd, other: rdd.join(other).mapValues(spread),
    "leftOuterJoin": lambda rdd, other: rdd.leftOuterJoin(other).mapValues(spread),
    "rightOuterJoin": lambda rdd, other: rdd.rightOuterJoin(other).mapValues(spread),
    "fullOuterJoin": lambda rdd, other: rdd.fullOuterJoin(other).mapValues(spread),
}


GIVEN = [("a", 1), ("b", -2), ("a", 1), (1, 2), (True, 3), (1.0, -1), (None, 2), (("a", 1), 0), ("a", 3)]
OTHERS = [("a", 2), (1, 1), ("c", 1), (None, -1), ("a", -3)]


def test_each_as_on_spark(spark_session: SparkSession) -> None:
    context = spark_session.sparkContext
    rdds = context.parallelize(GIVEN, 2), context.parallelize(OTHERS, 1)
    run = LocalRun(Settings(), "some")
    local = LocalRDD(run, lambda: iter(GIVEN)), LocalRDD(run, lambda: iter(OTHERS))
    named = [made(*rdds).map(lambda value, name=name: (name, value)) for name, made in OPERATIONS.items()]
    found = [(name, value) for name, made in OPERATIONS.items() for value in made(*local)._values()]
    assert Counter(found) == Counter(context.union(named).collect())


@settings(max_examples=8)
@given(pairs, pairs, st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=2, max_size=4))
def test_chained_as_on_spark(
    spark_session: SparkSession, values: list[Any], others: list[Any], names: list[str]
) -> None:
    context = spark_session.sparkContext
    run = LocalRun(Settings(), "some")
    rdd, other = context.parallelize(values, 2), context.parallelize(others, 1)
    local, local_other = LocalRDD(run, lambda: iter(values)), LocalRDD(run, lambda: iter(others))
    for name in names:
        rdd, local = OPERATIONS[name](rdd, other), OPERATIONS[name](local, local_other)
    assert Counter(rdd.collect()) == Counter(local._values())
