"""Tracked RDDs on a real Spark: the same results as plain ones, the ids of files, and what is refused."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.lake import layout, tweets
from provenance_store.lake.records import lines_of
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.rdd import TrackedRDD, parallelize
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.dics import category_totals
from spark_apps.dics.hashtag_count import add_up, find_hashtags
from tests.rewriting import rewrite_lines

LINES = ["é 1", "", "b 2", "雨\t3", "b 4", "a\rb 5", "😀"]


@pytest.fixture
def world(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    put(settings, "words", {"a.txt": "\n".join(LINES).encode(), "sub/b.txt.gz": gzip.compress(b"z 9\nlast\n")})
    return settings


def put(settings: Settings, dataset: str, files: dict[str, bytes]) -> None:
    with layout.new_version(layout.version_of(settings.lake, dataset, "v1"), {}) as folder:
        for name, data in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)


def execute(settings: Settings, session: SparkSession, body: Callable[[SparkRun], None]) -> Reduced:
    run_spark("dic", body, settings=settings, session=session, run="r1", outputs=["out"])
    return reduce_messages(RecordingSource(settings.recordings / "headwater.dic"))[0]  # type: ignore[operator]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_files_are_those_that_spark_writes_and_ids_lead_to_their_lines(
    spark_session: SparkSession, world: Settings, tmp_path: Path, compression: str | None
) -> None:
    def chain(lines: Any) -> Any:
        return lines.filter(lambda line: line != "b 2").map(lambda line: line + "!" if line else line)

    reduced = execute(world, spark_session, lambda run: chain(run.text("words")).saveAsTextFile("out", compression))
    source = layout.resolve(world.lake, "words")
    # As the run read them: the file's own splits, and only a line feed ends a line.
    read: RDD[Any] = spark_session.sparkContext.union(
        [spark_session.sparkContext.parallelize(LINES, 2), spark_session.sparkContext.parallelize(["z 9", "last"], 1)]
    )
    chain(read).saveAsTextFile(str(tmp_path / "plain"))
    written = layout.resolve(world.lake, "out/r1")
    suffix = ".txt" if compression is None else ".txt.gz"
    assert {file.name for file in written.path.iterdir()} == {
        "_headwater.json",
        *(f"part-{n:05d}{suffix}" for n in range(len(written.files()))),
    }
    opening = gzip.decompress if compression else bytes
    data = b"".join(opening(file.read_bytes()) for file in written.files())
    plain = b"".join(file.read_bytes() for file in sorted((tmp_path / "plain").glob("part-*")))
    assert Counter(data.split(b"\n")) == Counter(plain.split(b"\n"))
    inputs = read_lines(source)
    outputs = read_lines(written)
    assert reduced.graph.height == len(outputs) == 8
    for output, found in reduced.graph.iter_rows():
        assert outputs[output] == (inputs[found] + b"!" if inputs[found] else b"")


def read_lines(version: layout.Version) -> dict[str, bytes]:
    """Every line by the id that any reader derives from the files."""
    if not any(file.suffix == ".gz" for file in version.files()):
        return dict(lines_of(version))
    found = {}
    for file in version.files():
        data, position = file.read_bytes(), 0
        lines = (gzip.decompress(data) if file.suffix == ".gz" else data).split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            found[f"lake:{version.reference}/{file.relative_to(version.path)}#{position}"] = line
            position += len(line) + 1
    return found


def test_an_rdd_used_by_several_children_and_united_with_itself(spark_session: SparkSession, world: Settings) -> None:
    def body(run: SparkRun) -> None:
        pairs = run.text("words").filter(bool).map(lambda line: (line[0], 1)).mapPartitions(list)
        one = pairs.union(pairs).coalesce(1)
        one.reduceByKey(lambda a, b: a + b).join(pairs.distinct().map(lambda p: p)).map(str).saveAsTextFile("out")

    reduced = execute(world, spark_session, body)
    assert reduced.account.verdict == "complete"
    assert reduced.account.missing == {}
    inputs = set(reduced.graph["input"])
    assert len(inputs) == 8  # all that are not empty


def test_constants_are_no_records(spark_session: SparkSession, world: Settings) -> None:
    def body(run: SparkRun) -> None:
        table = parallelize(run, [("b", 10), ("q", 20)])
        lines = run.text("words").map(lambda line: (line[:1], line))
        lines.rightOuterJoin(table).map(str).saveAsTextFile("out")

    reduced = execute(world, spark_session, body)
    assert sorted(reduced.graph["input"]) == ["lake:words/v1/a.txt#16", "lake:words/v1/a.txt#6"]


def test_what_is_not_captured_is_refused_by_name(spark_session: SparkSession, world: Settings) -> None:
    def body(run: SparkRun) -> None:
        lines = run.text("words")
        for name in ("subtract", "cartesian", "collect", "count", "toDF", "zip", "pipe", "foreach", "intersection"):
            with pytest.raises(UnsupportedOperationError, match=f"RDD.{name} is not captured"):
                getattr(lines, name)
        with pytest.raises(AttributeError):
            lines.no_such_method  # noqa: B018 - reading it is the test
        with pytest.raises(InputError, match="of one captured run"):
            lines.union(spark_session.sparkContext.parallelize([1]))  # type: ignore[arg-type]
        with pytest.raises(UnsupportedOperationError, match="compression 'bzip2'"):
            lines.saveAsTextFile("out", "bzip2")
        with pytest.raises(Py4JJavaError, match="line break"):
            lines.map(lambda line: line + "\n").saveAsTextFile("out")
        with pytest.raises(Py4JJavaError, match=r"grouping or joining by a key of type builtins\.complex"):
            lines.map(lambda _: (1j, 1)).reduceByKey(lambda a, b: a + b).untracked.count()
        lines.saveAsTextFile("out")

    execute(world, spark_session, body)


def test_every_method_of_spark_is_here_or_refused(spark_session: SparkSession, world: Settings) -> None:
    public = [name for name in dir(RDD) if not name.startswith("_") and callable(getattr(RDD, name))]
    assert {"map", "reduceByKey", "saveAsTextFile"} <= set(public)
    tracked = TrackedRDD.__new__(TrackedRDD)
    for name in public:
        if name not in dir(TrackedRDD):
            with pytest.raises(UnsupportedOperationError):
                getattr(tracked, name)


def test_unpersisting_a_child_leaves_its_parent_cached(spark_session: SparkSession, world: Settings) -> None:
    def body(run: SparkRun) -> None:
        lines = run.text("words").cache()
        child = lines.map(str)
        child.unpersist()
        assert lines._rdd.is_cached
        kept = child.persist()
        assert kept is child
        kept.filter(bool).saveAsTextFile("out")
        kept.unpersist()
        lines.unpersist(blocking=True)
        assert not lines._rdd.is_cached

    assert execute(world, spark_session, body).graph.height == 8


def test_category_totals_reads_what_hashtag_count_wrote(spark_session: SparkSession, world: Settings) -> None:
    tweets.generate(world.lake, count=300, seed=7)
    counts: Counter[str] = Counter()
    for _, line in lines_of(layout.resolve(world.lake, "tweets")):
        counts.update(hashtag for hashtag, _ in find_hashtags(0, line.decode()))
    rows = [next(add_up(hashtag, iter([str(count)]))) for hashtag, count in counts.items()]
    put(world, "hashtag_counts", {"part-00000": "".join(f"{h}\t{c}\n" for h, c in rows).encode()})

    def body(run: SparkRun) -> None:
        category_totals.total(run.text("hashtag_counts"), run.text("categories")).saveAsTextFile("out")

    reduced = execute(world, spark_session, body)
    table = dict(
        category_totals.read_category(line.decode()) for _, line in lines_of(layout.resolve(world.lake, "categories"))
    )
    expected: Counter[str] = Counter()
    for hashtag, count in counts.items():
        if hashtag in table:
            expected[table[hashtag]] += count
    outputs = {record: line.decode() for record, line in lines_of(layout.resolve(world.lake, "out/r1"))}
    assert Counter(dict(map(category_totals.read_count, outputs.values()))) == expected
    inputs = {
        **read_lines(layout.resolve(world.lake, "hashtag_counts")),
        **read_lines(layout.resolve(world.lake, "categories")),
    }
    found: dict[str, set[str]] = {}
    for output, source in reduced.graph.iter_rows():
        line = inputs[source].decode()
        reading = category_totals.read_count if source.startswith("lake:hashtag") else category_totals.read_category
        found.setdefault(outputs[output].split("\t")[0], set()).add(f"{source.split('/')[0]} {reading(line)[0]}")
    assert found == {
        category: {
            text
            for h in counts
            if table.get(h) == category
            for text in (f"lake:hashtag_counts {h}", f"lake:categories {h}")
        }
        for category in expected
    }


def test_rewritten_lines_keep_their_ids(spark_session: SparkSession, world: Settings) -> None:
    version = layout.resolve(world.lake, "words")
    before = read_lines(version)
    changes = {b"b 2": None, "雨\t3".encode(): b"longer than it was, by far", b"z 9": b""}
    for file in version.files():
        rewrite_lines(version, file, lambda line: changes.get(line, line))
    reduced = execute(world, spark_session, lambda run: run.text("words").map(lambda line: line).saveAsTextFile("out"))
    outputs = read_lines(layout.resolve(world.lake, "out/r1"))
    found = {source: outputs[output] for output, source in reduced.graph.iter_rows()}
    assert found == {record: changes.get(line, line) for record, line in before.items() if line != b"b 2"}
    assert found == dict(lines_of(version))
