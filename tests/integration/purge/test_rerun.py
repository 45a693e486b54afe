"""A Spark DIC run again for a purge: here where it can be, with the result of Spark, and else on Spark."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from provenance_store.lake.layout import new_version, version_of
from provenance_store.lake.records import lines_of
from provenance_store.settings import Settings
from spark_apps.capture.spark_job import SparkJob
from spark_apps.dics.category_totals import JOB
from spark_apps.purge.rerun import compute

INPUTS = ["hashtag_counts/one", "categories/one"]


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    with new_version(version_of(settings.lake, "hashtag_counts", "one"), {}) as folder:
        (folder / "part-00000").write_bytes("sun\t3\nschnée\t2\n\n".encode())
        (folder / "part-00001.gz").write_bytes(gzip.compress(b"rain\t4\nunknown\t9"))
    with new_version(version_of(settings.lake, "categories", "one"), {}) as folder:
        rows = [("sun", "dry"), ("schnée", "wet"), ("rain", "wet"), ("rain", "grey")]
        lines = (f'{{"hashtag": "{tag}", "category": "{name}"}}\n' for tag, name in rows)
        (folder / "table.jsonl").write_text("".join(lines))
    return settings


def lines_in(settings: Settings, dataset: str, run: str) -> Counter[bytes]:
    return Counter(line for _, line in lines_of(version_of(settings.lake, dataset, run)))


def test_the_same_as_on_spark(lake: Settings, spark_session: SparkSession) -> None:
    assert compute(JOB, lake, "here", INPUTS)
    JOB.execute(lake, spark_session, run="there", inputs=INPUTS)
    assert lines_in(lake, "category_totals", "here") == Counter([b"dry\t3", b"wet\t6", b"grey\t4"])
    assert lines_in(lake, "category_totals", "here") == lines_in(lake, "category_totals", "there")


def test_compressed(lake: Settings) -> None:
    def run(captured, inputs):
        captured.text(inputs[1]).map(len).saveAsTextFile("lengths", compression="gzip")

    assert compute(SparkJob(dic="lengths", run=run, inputs=["a", "b"], outputs=["lengths"]), lake, "here", INPUTS)
    made = version_of(lake.lake, "lengths", "here")
    assert [file.name for file in made.files()] == ["part-00000.txt.gz"]
    assert sum(lines_in(lake, "lengths", "here").values()) == 4


def asks_for_spark(captured, inputs):
    captured.spark.range(3)


def asks_for_partitions(captured, inputs):
    captured.text(inputs[0]).mapPartitions(lambda lines: [len(list(lines))]).saveAsTextFile("made")


def catches_what_it_lacks(captured, inputs):
    lines = captured.text(inputs[0])
    try:
        lines = lines.sortBy(len)
    except Exception:
        captured.text(inputs[1]).saveAsTextFile("made")


def writes_more_than_it_declares(captured, inputs):
    for name in ("made", "more"):
        captured.text(inputs[0]).saveAsTextFile(name)


def fails(captured, inputs):
    captured.text(inputs[0]).map(int).saveAsTextFile("made")


@pytest.mark.parametrize(
    "run", [asks_for_spark, asks_for_partitions, catches_what_it_lacks, writes_more_than_it_declares, fails]
)
def test_needs_spark(lake: Settings, run) -> None:
    job = SparkJob(dic="made", run=run, inputs=["a", "b"], outputs=["made"])
    assert not compute(job, lake, "here", INPUTS)
    assert not version_of(lake.lake, "made", "here").exists()


def test_bytes_that_are_no_text_are_read_by_spark(lake: Settings) -> None:
    (version_of(lake.lake, "hashtag_counts", "one").path / "part-00002").write_bytes(b"\xff\t1\n")
    assert not compute(JOB, lake, "here", INPUTS)
