"""Lineage captured from DataFrames equals lineage by brute force, for random data and random chains of operations."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.lake import layout
from provenance_store.lake.records import lines_of
from provenance_store.model.ids import RecordId, hash_key
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.spark_run import SparkRun, run_spark
from tests.property.lineage_oracle import Row, Rows, Value, as_multiset, grouped, joined, narrow, windowed

CHAINS = 40
SCHEMA = "k int, s string, v bigint"
FORMATS = ("parquet", "jsonl", "csv", "jsonl.gz")
DRAWN: Counter[str] = Counter()


class State:
    """A frame and, beside it, the rows that brute force says it has."""

    def __init__(self, chance: random.Random, frame: TrackedFrame, rows: Rows, others: list[tuple[TrackedFrame, Rows]]):
        self.chance = chance
        self.frame = frame
        self.rows = rows
        self.others = others

    def is_distinct(self) -> bool:
        return len({row.value for row in self.rows}) == len(self.rows)

    def other(self) -> tuple[TrackedFrame, Rows]:
        return self.chance.choice([*self.others, (self.frame, self.rows)])


Operation = Callable[[State], tuple[TrackedFrame, Rows] | None]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    OPERATIONS[function.__name__] = function
    return function


def low(value: Any) -> tuple[bool, Any]:
    """Spark sorts nulls first."""
    return (value is not None, value)


def key_of(value: Value) -> tuple[Any, ...]:
    return tuple(low(one) for one in value)


@operation
def select(s: State) -> tuple[TrackedFrame, Rows]:
    frame = s.frame.select("k", F.upper("s").alias("s"), (F.col("v") + 1).alias("v"))
    return frame, narrow(s.rows, lambda r: [(r[0], r[1] and r[1].upper(), r[2] + 1)])


@operation
def select_star(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.select("*"), s.rows


@operation
def with_column(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.withColumn("v", F.col("v") * 2), narrow(s.rows, lambda r: [(r[0], r[1], r[2] * 2)])


@operation
def filter_(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.filter(F.col("v") % 3 != 0), narrow(s.rows, lambda r: [r] if abs(r[2]) % 3 else [])


@operation
def explode(s: State) -> tuple[TrackedFrame, Rows] | None:
    if len(s.rows) > 60:
        return None
    frame = s.frame.withColumn("e", F.explode(F.array(F.lit(0), F.lit(1)))).withColumn("v", F.col("v") + F.col("e"))
    return frame.drop("e"), narrow(s.rows, lambda r: [(r[0], r[1], r[2] + e) for e in (0, 1)])


@operation
def order_by(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.orderBy("v", F.desc("s"), "k"), s.rows


@operation
def limit(s: State) -> tuple[TrackedFrame, Rows] | None:
    if not s.is_distinct():
        return None
    number = s.chance.randint(1, max(1, len(s.rows)))
    return s.frame.orderBy("k", "s", "v").limit(number), sorted(s.rows, key=lambda r: key_of(r.value))[:number]


@operation
def sample_all(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.sample(fraction=1.0, seed=3), s.rows


@operation
def cache(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.cache(), s.rows


@operation
def repartition(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.repartition(3), s.rows


@operation
def alias_and_rename(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.alias("o").filter("o.v > -100000").withColumnRenamed("s", "t").toDF("k", "s", "v"), s.rows


@operation
def fill_and_drop_nulls(s: State) -> tuple[TrackedFrame, Rows]:
    frame = s.frame.fillna("none", ["s"]).dropna(subset=["k"])
    return frame, narrow(s.rows, lambda r: [] if r[0] is None else [(r[0], "none" if r[1] is None else r[1], r[2])])


@operation
def union(s: State) -> tuple[TrackedFrame, Rows] | None:
    frame, rows = s.other()
    return (s.frame.union(frame), s.rows + rows) if len(s.rows) + len(rows) < 120 else None


@operation
def union_by_name(s: State) -> tuple[TrackedFrame, Rows] | None:
    frame, rows = s.other()
    return (s.frame.unionByName(frame.select("v", "k", "s")), s.rows + rows) if len(rows) < 60 else None


@operation
def distinct(s: State) -> tuple[TrackedFrame, Rows]:
    return s.frame.distinct(), grouped(s.rows, lambda r: r, lambda k, _: k)


@operation
def drop_duplicates(s: State) -> tuple[TrackedFrame, Rows]:
    # Which of the other values stays is Spark's choice; so they are taken away.
    frame = s.frame.dropDuplicates(["k", "s"]).withColumn("v", F.lit(7).cast("bigint"))
    return frame, grouped(s.rows, lambda r: r[:2], lambda k, _: (*k, 7))


@operation
def group_by(s: State) -> tuple[TrackedFrame, Rows]:
    frame = s.frame.groupBy("k").agg(F.min("s").alias("s"), F.sum("v").alias("v"))
    return frame, grouped(
        s.rows,
        lambda r: r[0],
        lambda k, m: (k, min((r[1] for r in m if r[1] is not None), default=None), sum(r[2] for r in m)),
    )


@operation
def group_by_expression(s: State) -> tuple[TrackedFrame, Rows]:
    key = F.col("v") % 2
    frame = s.frame.groupBy("s", key.alias("p")).agg(F.max("k").alias("k"), F.count("*").alias("v"))
    return frame.select("k", "s", "v"), grouped(
        s.rows,
        lambda r: (r[1], r[2] % 2 if r[2] >= 0 else -(-r[2] % 2)),
        lambda k, m: (max((r[0] for r in m if r[0] is not None), default=None), k[0], len(m)),
    )


@operation
def group_all(s: State) -> tuple[TrackedFrame, Rows] | None:
    if not s.rows:
        return None
    frame = s.frame.agg(F.max("k").alias("k"), F.max("s").alias("s"), F.max("v").alias("v"))

    def top(_: Any, m: list[Value], i: int) -> Any:
        return max((r[i] for r in m if r[i] is not None), default=None)

    return frame, grouped(s.rows, lambda _: 0, lambda k, m: (top(k, m, 0), top(k, m, 1), top(k, m, 2)))


def _joined(how: str) -> Operation:
    def join(s: State) -> tuple[TrackedFrame, Rows] | None:
        frame, rows = s.other()
        if len(s.rows) * len(rows) > 1500:
            return None
        right = frame.select(F.col("k").alias("k2"), F.col("s").alias("s2"), F.col("v").alias("v2"))
        condition = (F.col("k") == F.col("k2")) & (F.col("v") >= F.col("v2") - 30)
        both = s.frame.join(right, condition, how)
        matches = lambda a, b: a[0] is not None and a[0] == b[0] and a[2] >= b[2] - 30  # noqa: E731
        if how in {"left_semi", "left_anti"}:
            return both, joined(s.rows, rows, matches, how, lambda a, _: a or ())
        made = both.select(
            F.coalesce("k", "k2").alias("k"),
            F.coalesce("s2", "s").alias("s"),
            (F.coalesce("v", F.lit(0)) + F.coalesce("v2", F.lit(0))).alias("v"),
        )
        return made, joined(s.rows, rows, matches, how, _met)

    return join


def _met(a: Value | None, b: Value | None) -> Value:
    first, second = a or (None, None, 0), b or (None, None, 0)
    return (
        first[0] if first[0] is not None else second[0],
        second[1] if second[1] is not None else first[1],
        first[2] + second[2],
    )


for kind in ("inner", "left", "right", "full", "left_semi", "left_anti"):
    OPERATIONS[f"join_{kind}"] = _joined(kind)


@operation
def join_by_name(s: State) -> tuple[TrackedFrame, Rows] | None:
    frame, rows = s.other()
    if len(s.rows) * len(rows) > 1500:
        return None
    both = s.frame.join(frame.select("k", F.col("v").alias("w")), "k")
    made = both.select("k", "s", (F.col("v") + F.col("w")).alias("v"))
    same = lambda a, b: a[0] is not None and a[0] == b[0]  # noqa: E731
    return made, joined(s.rows, rows, same, "inner", lambda a, b: (a[0], a[1], a[2] + b[2]) if a and b else ())


@operation
def semi_join_by_name(s: State) -> tuple[TrackedFrame, Rows]:
    frame, rows = s.other()
    same = lambda a, b: a[0] is not None and a[0] == b[0]  # noqa: E731
    return s.frame.join(frame.select("k"), "k", "left_semi"), joined(
        s.rows, rows, same, "left_semi", lambda a, _: a or ()
    )


@operation
def cross_join(s: State) -> tuple[TrackedFrame, Rows] | None:
    frame, rows = s.others[0]
    if len(s.rows) * len(rows) > 150:
        return None
    both = s.frame.crossJoin(frame.select(F.col("v").alias("w")))
    made = both.select("k", "s", (F.col("v") + F.col("w")).alias("v"))
    return made, joined(
        s.rows, rows, lambda *_: True, "inner", lambda a, b: (a[0], a[1], a[2] + b[2]) if a and b else ()
    )


def _window() -> Any:
    return Window.partitionBy("k").orderBy("s", "v")


@operation
def window_rank(s: State) -> tuple[TrackedFrame, Rows]:
    frame = s.frame.withColumn("r", F.rank().over(_window())).select("k", "s", F.col("r").cast("bigint").alias("v"))

    def make(row: Value, seen: list[Value], _: int) -> Value:
        return (row[0], row[1], 1 + sum(key_of(one[1:]) < key_of(row[1:]) for one in seen))

    return frame, windowed(s.rows, lambda r: r[0], lambda r: key_of(r[1:]), None, make)


@operation
def window_total(s: State) -> tuple[TrackedFrame, Rows]:
    # By an expression, and within select beside other columns.
    frame = s.frame.select("k", "s", F.sum("v").over(Window.partitionBy(F.col("k") % 2)).alias("v"))
    part = lambda r: None if r[0] is None else r[0] % 2  # noqa: E731
    return frame, windowed(s.rows, part, lambda _: 0, None, lambda r, m, _: (r[0], r[1], sum(o[2] for o in m)))


@operation
def window_lag(s: State) -> tuple[TrackedFrame, Rows] | None:
    if not s.is_distinct():
        return None
    frame = s.frame.withColumn("v", F.coalesce(F.lag("v", 2).over(_window()), F.lit(-5)))
    make = lambda r, seen, place: (r[0], r[1], seen[0][2] if place >= 2 else -5)  # noqa: E731
    return frame, windowed(s.rows, lambda r: r[0], lambda r: key_of(r[1:]), (-2, -2), make)


@operation
def window_frame(s: State) -> tuple[TrackedFrame, Rows] | None:
    if not s.is_distinct():
        return None
    frame = s.frame.withColumn("v", F.sum("v").over(_window().rowsBetween(-1, 1)))
    make = lambda r, seen, _: (r[0], r[1], sum(o[2] for o in seen))  # noqa: E731
    return frame, windowed(s.rows, lambda r: r[0], lambda r: key_of(r[1:]), (-1, 1), make)


@operation
def sql_view(s: State) -> tuple[TrackedFrame, Rows]:
    s.frame.createOrReplaceTempView("named")
    return s.frame._run.table("named"), s.rows


def make_input(lake: Path, chance: random.Random, dataset: str) -> tuple[str, list[tuple[str, Value]]]:
    """A version in some format and number of files; and its rows with the ids that a reader of the files finds."""
    form = chance.choice(FORMATS)
    version = layout.version_of(lake, dataset, "v1")
    rows = [
        (
            chance.choice([None, 0, 1, 2, 3]),
            chance.choice([None, "a", "b", "ü,\"x'"]) if form != "csv" else chance.choice(["a", "b", "ü x"]),
            chance.randint(-20, 40),
        )
        for _ in range(chance.randint(0, 14))
    ]
    found: list[tuple[str, Value]] = []
    with layout.new_version(version, {}) as folder:
        cut = chance.randint(0, len(rows))
        for name, part in (("day=1/part a%41", rows[:cut]), ("part,b#é{1}[2]*", rows[cut:])):
            path = folder / f"{name}.{form}"
            path.parent.mkdir(exist_ok=True)
            places = _write(path, form, part)
            ids = (str(RecordId(dataset, "v1", file=f"{name}.{form}", position=place)) for place in places)
            found += zip(ids, part, strict=True)
    return version.reference, found


def _write(path: Path, form: str, rows: list[Value]) -> list[int]:
    if form == "parquet":
        schema = {"k": pl.Int32, "s": pl.String, "v": pl.Int64}
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path, row_group_size=3)
        return list(range(len(rows)))
    import gzip

    if form == "csv":
        lines = [f"{'' if k is None else k},{s},{v}\n" for k, s, v in rows]
    else:
        lines = [json.dumps({"k": k, "s": s, "v": v}, ensure_ascii=False) + "\n" for k, s, v in rows]
    encoded = [line.encode() for line in lines]
    data = b"".join(encoded)
    path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    starts = [0]
    for line in encoded:
        starts.append(starts[-1] + len(line))
    return starts[:-1]


def read_output(version: layout.Version) -> dict[str, Value]:
    """The rows of an output by the ids that a later reader derives from the files alone."""
    found: dict[str, Value] = {}
    for path in version.files():
        name = path.name
        if name.endswith(".parquet"):
            for place, row in enumerate(pl.read_parquet(path).iter_rows()):
                found[str(RecordId(version.dataset, version.name, file=name, position=place))] = row
    if not any(path.suffix == ".parquet" for path in version.files()):
        for record, line in lines_of(version):
            row = json.loads(line)
            found[record] = (row.get("k"), row.get("s"), row.get("v"))
    return found


@pytest.fixture
def world(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")


@pytest.mark.parametrize("seed", range(CHAINS))
def test_a_random_chain(spark_session: SparkSession, world: Settings, seed: int) -> None:
    chance = random.Random(seed)
    sources = [make_input(world.lake, chance, dataset) for dataset in ("one", "two")]
    keyed = chance.random() < 0.3
    drawn: list[str] = []
    expected: Rows = []

    def body(run: SparkRun) -> None:
        nonlocal expected
        inputs = []
        for place, (reference, found) in enumerate(sources):
            frame = run.read(reference, schema=SCHEMA)
            rows = [Row(value, frozenset([record])) for record, value in found]
            if keyed and place == 1:
                frame, rows = _by_key(run, world, spark_session, rows)
            inputs.append((frame, rows))
        state = State(chance, *inputs[0], inputs[1:])
        length = chance.randint(3, 8)
        while len(drawn) < length:
            name = chance.choice(sorted(OPERATIONS))
            made = OPERATIONS[name](state)
            if made is not None:
                state.frame, state.rows = made
                drawn.append(name)
        expected = state.rows
        run.write(state.frame, "out", format=chance.choice(["parquet", "jsonl"]))

    run_spark("chain", body, settings=world, session=spark_session, run="r1", outputs=["out"])
    DRAWN.update(drawn)
    version = layout.resolve(world.lake, "out/r1")
    values = read_output(version)
    (reduced,) = reduce_messages(RecordingSource(world.recordings / "headwater.chain"))
    assert reduced.account.verdict == "complete", drawn
    lineage: dict[str, set[str]] = {record: set() for record in values}
    for output, source in reduced.graph.iter_rows():
        lineage[output].add(source)
    got = Counter(Row(values[record], frozenset(found)) for record, found in lineage.items())
    assert got == as_multiset(expected), drawn


def _by_key(run: SparkRun, world: Settings, session: SparkSession, rows: Rows) -> tuple[TrackedFrame, Rows]:
    """The same values from a SQL view whose records are known by a key that may be personal."""
    numbered = [(f"mail{n}@example.org", *row.value) for n, row in enumerate(rows)]
    plain = session.createDataFrame(numbered, f"id string, {SCHEMA}")
    plain.createOrReplaceTempView("people")
    frame = run.view("people", dataset="people", version="v1", key=["id"], personal_key=True).drop("id")
    secret = world.hmac_key()
    ids = [str(RecordId("people", "v1", hashed_key=hash_key(one[0], secret=secret))) for one in numbered]
    return frame, [Row(row.value, frozenset([record])) for record, row in zip(ids, rows, strict=True)]


def test_every_operation_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\nDataFrame operations drawn:", ", ".join(f"{name} {DRAWN[name]}" for name in sorted(OPERATIONS)))
    assert set(DRAWN) == set(OPERATIONS)
