"""Lineage captured from RDDs equals lineage by brute force, for random data and random chains of operations."""

import ast
import gzip
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from provenance_store.lake import layout
from provenance_store.model.ids import RecordId
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.rdd import TrackedRDD, parallelize
from spark_apps.capture.spark_run import SparkRun, run_spark
from tests.property.lineage_oracle import Row, Rows, Value, as_multiset, grouped, joined, narrow

CHAINS = 30
MOST_ROWS = 300
# Some are equal in Python and must be one group: 1 and 1.0, (1, "x") and (1.0, "x").
KEYS: list[Any] = [0, 1, 1.0, 2, 2.5, "a", "é#", "", None, (1, "x"), (1.0, "x"), (None, ("y", 0))]
DRAWN: Counter[str] = Counter()
Found = tuple[TrackedRDD, Rows]


class State:
    """An RDD of pairs and, beside it, the rows that brute force says it has."""

    def __init__(self, chance: random.Random, run: SparkRun, found: Found, others: list[Found]) -> None:
        self.chance = chance
        self.run = run
        self.rdd, self.rows = found
        self.others = others

    def other(self) -> Found:
        """Another input, an RDD of earlier in the chain, or this one itself."""
        return self.chance.choice([*self.others, (self.rdd, self.rows)])

    def lineage_of(self) -> dict[Value, frozenset[str]] | None:
        """The lineage of each value, where equal values have the same."""
        found: dict[Value, frozenset[str]] = {}
        return None if any(found.setdefault(r.value, r.lineage) != r.lineage for r in self.rows) else found


Operation = Callable[[State], Found | None]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    OPERATIONS[function.__name__] = function
    return function


def mix(*values: Any) -> int:
    """A number that depends on all of them, in order."""
    made = 17
    for value in values:
        made = (made * 31 + (value or 0)) % 100_003
    return made


def by_key(value: Value) -> Any:
    return value[0]


def add(a: int, b: int) -> int:
    return (a + b) % 100_003


def total(key: Any, values: list[Value]) -> Value:
    return key, sum(v for _, v in values) % 100_003


def summed(s: State, made: TrackedRDD) -> Found:
    return made, grouped(s.rows, by_key, total)


@operation
def map(s: State) -> Found:  # noqa: A001 - Spark's name, as all of these
    return s.rdd.map(lambda p: (p[0], mix(p[1]))), narrow(s.rows, lambda p: [(p[0], mix(p[1]))])


@operation
def flatMap(s: State) -> Found:  # noqa: N802
    def twice(p: Value) -> list[Value]:
        return [(p[0], p[1]), (KEYS[p[1] % len(KEYS)], mix(p[1], 1))][: p[1] % 3]

    return s.rdd.flatMap(twice), narrow(s.rows, twice)


@operation
def filter(s: State) -> Found:  # noqa: A001
    return s.rdd.filter(lambda p: p[1] % 4), narrow(s.rows, lambda p: [p] if p[1] % 4 else [])


@operation
def mapValues(s: State) -> Found:  # noqa: N802
    return s.rdd.mapValues(lambda v: mix(v, 3)), narrow(s.rows, lambda p: [(p[0], mix(p[1], 3))])


@operation
def flatMapValues(s: State) -> Found:  # noqa: N802
    made = s.rdd.flatMapValues(lambda v: range(v, v + v % 3))
    return made, narrow(s.rows, lambda p: [(p[0], v) for v in range(p[1], p[1] + p[1] % 3)])


@operation
def keyBy(s: State) -> Found:  # noqa: N802
    made = s.rdd.keyBy(lambda p: p[1] % 5).map(lambda p: (p[0], p[1][1]))
    return made, narrow(s.rows, lambda p: [(p[1] % 5, p[1])])


@operation
def keys(s: State) -> Found:
    return s.rdd.keys().map(lambda k: (k, 1)), narrow(s.rows, lambda p: [(p[0], 1)])


@operation
def values(s: State) -> Found:
    return s.rdd.values().map(lambda v: (str(v % 3), v)), narrow(s.rows, lambda p: [(str(p[1] % 3), p[1])])


@operation
def union(s: State) -> Found:
    rdd, rows = s.other()
    return s.rdd.union(rdd), s.rows + rows


@operation
def constants(s: State) -> Found:
    made = [(KEYS[n], n) for n in s.chance.sample(range(len(KEYS)), 3)]
    return s.rdd.union(parallelize(s.run, made, 2)), s.rows + [Row(value, frozenset()) for value in made]


@operation
def distinct(s: State) -> Found:
    return s.rdd.distinct(), grouped(s.rows, lambda value: value, lambda value, _: value)


@operation
def reduceByKey(s: State) -> Found:  # noqa: N802
    return summed(s, s.rdd.reduceByKey(add))


@operation
def foldByKey(s: State) -> Found:  # noqa: N802
    return summed(s, s.rdd.foldByKey(0, add, 2))


@operation
def aggregateByKey(s: State) -> Found:  # noqa: N802
    return summed(s, s.rdd.aggregateByKey(0, add, add))


@operation
def combineByKey(s: State) -> Found:  # noqa: N802
    def put(made: list[int], value: int) -> list[int]:
        return [*made, value]

    made = s.rdd.combineByKey(lambda v: [v], put, lambda a, b: a + b, 3)
    return summed(s, made.mapValues(lambda found: sum(found) % 100_003))


@operation
def groupByKey(s: State) -> Found:  # noqa: N802
    return summed(s, s.rdd.groupByKey().mapValues(lambda found: sum(found) % 100_003))


@operation
def groupBy(s: State) -> Found:  # noqa: N802
    made = s.rdd.groupBy(lambda p: p[1] % 4).mapValues(lambda found: sum(v for _, v in found) % 100_003)
    return made, grouped(s.rows, lambda p: p[1] % 4, total)


@operation
def cogroup(s: State) -> Found:
    rdd, rows = s.other()
    made = s.rdd.cogroup(rdd).mapValues(lambda two: mix(sum(two[0]), sum(two[1])))
    tagged = [Row((r.value[0], r.value[1], side), r.lineage) for side, part in enumerate((s.rows, rows)) for r in part]

    def make(key: Any, found: list[Value]) -> Value:
        return key, mix(*(sum(v for _, v, side in found if side == one) for one in (0, 1)))

    return made, grouped(tagged, by_key, make)


def join_operation(name: str, how: str) -> None:
    def perform(s: State) -> Found | None:
        rdd, rows = s.other()
        if len(s.rows) * len(rows) > 20_000:
            return None
        made = getattr(s.rdd, name)(rdd).mapValues(lambda two: mix(*two))
        matches: Callable[[Value, Value], bool] = lambda a, b: a[0] == b[0]  # noqa: E731
        return made, joined(
            s.rows,
            rows,
            matches,
            how,
            lambda a, b: ((a or b or ())[0], mix(a and a[1], b and b[1])),
        )

    OPERATIONS[name] = perform


for _name, _how in {
    "join": "inner",
    "leftOuterJoin": "left",
    "rightOuterJoin": "right",
    "fullOuterJoin": "full",
}.items():
    join_operation(_name, _how)


@operation
def sortBy(s: State) -> Found:  # noqa: N802
    return s.rdd.sortBy(lambda p: p[1], ascending=s.chance.random() < 0.5, numPartitions=2), s.rows


@operation
def sortByKey(s: State) -> Found:  # noqa: N802
    def plain(p: Value) -> Value:  # Spark sorts only what can be compared
        return spell(p[0]), p[1]

    made = s.rdd.map(plain).sortByKey(numPartitions=s.chance.randint(1, 3), keyfunc=lambda key: key[::-1])
    return made, narrow(s.rows, lambda p: [plain(p)])


def spell(key: Any) -> str:
    """The same text for equal keys."""
    if isinstance(key, tuple):
        return "".join([spell(part) for part in key])
    return str(float(key)) if isinstance(key, int | float) else str(key)


@operation
def cache(s: State) -> Found | None:
    if s.rdd._told:
        return None
    s.rdd.cache().untracked.count()
    if s.chance.random() < 0.4:  # lost again: it is computed anew
        s.rdd.unpersist(blocking=True)
    return s.rdd, s.rows


@operation
def sample(s: State) -> Found | None:
    lineage = s.lineage_of()
    if lineage is None:
        return None
    made = s.rdd.sample(s.chance.random() < 0.3, 0.6, seed=s.chance.randrange(1000))
    return made, [Row(value, lineage[value]) for value in made.untracked.collect()]


@operation
def zipWithIndex(s: State) -> Found:  # noqa: N802
    made = s.rdd.zipWithIndex()
    assert sorted(made.map(by_second).untracked.collect()) == list(range(len(s.rows)))
    return made.map(by_key), s.rows


def by_second(value: Value) -> Any:
    return value[1]


@operation
def coalesce(s: State) -> Found:
    return s.rdd.coalesce(s.chance.randint(1, 2)), s.rows


@operation
def repartition(s: State) -> Found:
    return s.rdd.repartition(s.chance.randint(1, 3)), s.rows


def in_partitions(s: State, made: TrackedRDD, make: Callable[[list[Value]], list[Value]]) -> Found | None:
    """Which partition a record is in is Spark's to say."""
    lineage = s.lineage_of()
    if lineage is None or not s.rdd._settled:
        return None
    rows: Rows = []
    for part in s.rdd.untracked.glom().collect():
        seen = frozenset().union(*(lineage[value] for value in part))
        rows += [Row(value, seen) for value in make(part)]
    return made, rows


@operation
def mapPartitions(s: State) -> Found | None:  # noqa: N802
    def first_two(found: Any) -> list[Value]:
        return [pair for pair, _ in zip(found, range(2), strict=False)]

    return in_partitions(s, s.rdd.mapPartitions(first_two), first_two)


@operation
def mapPartitionsWithIndex(s: State) -> Found | None:  # noqa: N802
    def count(found: Any) -> list[Value]:
        return [("n", len(list(found)))]

    return in_partitions(s, s.rdd.mapPartitionsWithIndex(lambda _, found: count(found)), count)


def make_input(root: Path, chance: random.Random, dataset: str) -> tuple[str, Rows]:
    """A version of a few files, one of them compressed, and its records."""
    version = layout.version_of(root, dataset, "v1")
    rows: Rows = []
    with layout.new_version(version, {}) as folder:
        for file in ("part-00000.txt", "day=é/part-00001.txt.gz"):
            data = b""
            for _ in range(chance.choice([0, 6, 15])):
                pair = (chance.choice(KEYS), chance.randrange(1000))
                record = RecordId(dataset, "v1", file=file, position=len(data))
                rows.append(Row(pair, frozenset([str(record)])))
                data += f"{pair!r}\n".encode()
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    return version.reference, rows


def read_output(version: layout.Version) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for path in version.files():
        data = path.read_bytes()
        position = 0
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")[:-1]:
            values[str(RecordId(version.dataset, version.name, file=path.name, position=position))] = ast.literal_eval(
                line.decode()
            )
            position += len(line) + 1
    return values


@pytest.mark.parametrize("seed", range(CHAINS))
def test_a_random_chain(spark_session: SparkSession, tmp_path: Path, seed: int) -> None:
    world = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    chance = random.Random(seed)
    sources = [make_input(world.lake, chance, dataset) for dataset in ("one", "two")]
    drawn: list[str] = []
    expected: Rows = []

    def body(run: SparkRun) -> None:
        nonlocal expected
        inputs = [(run.text(reference).map(ast.literal_eval), rows) for reference, rows in sources]
        state = State(chance, run, inputs[0], inputs[1:])
        length = chance.randint(3, 8)
        while len(drawn) < length:
            # What was drawn least goes first, so that thirty chains see every operation several times.
            name = min(chance.sample(sorted(OPERATIONS), 3), key=lambda one: DRAWN[one])
            made = OPERATIONS[name](state)
            if made is None or len(made[1]) > MOST_ROWS:
                continue
            drawn.append(name)
            DRAWN[name] += 1
            state.others.append((state.rdd, state.rows))
            state.rdd, state.rows = made
            if state.rdd.getNumPartitions() > 4:
                state.rdd = state.rdd.coalesce(2)
        expected = state.rows
        state.rdd.saveAsTextFile("out", compression=chance.choice([None, "gzip"]))

    run_spark("chain", body, settings=world, session=spark_session, run="r1", outputs=["out"])
    values = read_output(layout.resolve(world.lake, "out/r1"))
    reduced = reduce_messages(RecordingSource(world.recordings / "headwater.chain"))[0]
    assert reduced.account.verdict == "complete", drawn
    lineage: dict[str, set[str]] = {record: set() for record in values}
    for output, source in reduced.graph.iter_rows():
        lineage[output].add(source)
    got = Counter(Row(values[record], frozenset(found)) for record, found in lineage.items())
    assert got == as_multiset(expected), drawn


def test_every_operation_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\nRDD operations drawn:", ", ".join(f"{name} {DRAWN[name]}" for name in sorted(OPERATIONS)))
    assert set(DRAWN) == set(OPERATIONS)
