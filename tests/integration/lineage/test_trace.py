"""`headwater trace`, as a person calls it; and the same answers as the lake graph in Neo4j gives."""

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.export.bulk import EDGES_FILE, RECORDS_FILE, STARTS_FILE, UNKNOWN_FILE
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import tweets
from provenance_store.lake.records import lines_of
from provenance_store.settings import Settings
from spark_apps.lineage.app import run
from spark_apps.lineage.question import BulkQuestion
from spark_apps.lineage.starts import read_starts
from tests.reduced import write_reduced

HASHTAG = re.compile(r"#(\w+)")


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    """The reduced graphs of the tweet workflow: counts of hashtags over tweets, then totals of categories."""
    word = f"t{uuid.uuid4().hex[:12]}"
    counts, totals = set(), set()
    for tweet, line in lines_of(tweets.generate(tmp_path / "lake", count=60, seed=3)):
        for tag in HASHTAG.findall(json.loads(line)["text"]):
            count = f"lake:{word}-counts/1#{tag.encode().hex()}"
            counts.add((count, tweet.replace("lake:tweets/", f"lake:{word}-tweets/")))
            totals.add((f"lake:{word}-totals/1#{len(tag) % 4}", count))
    folder = tmp_path / "reduced"
    write_reduced(folder / "counts", f"{word}-counts", counts, dic="hashtag-count")
    write_reduced(folder / "old", f"{word}-totals", list(totals)[:5], dic="category-totals")
    write_reduced(folder / "new", f"{word}-totals", totals, dic="category-totals", generation=1, verdict="partial")
    return folder


@pytest.fixture
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_spark_and_neo4j_answer_the_same(
    lake_graph: LakeGraph, spark_session: SparkSession, workflow: Path, tmp_path: Path, direction: str
) -> None:
    for name in ("old", "counts", "new"):
        lake_graph.merge(workflow / name)
    edges = pl.concat(pl.read_parquet(workflow / name / "graph.parquet") for name in ("counts", "new"))
    starts = sorted({*edges["output"], *edges["input"]})[::3]
    out = tmp_path / "out"
    summary = run(spark_session, BulkQuestion(direction, edges=True), starts=starts, reduced=[workflow], out=out)
    records, told, crossed = (
        pl.read_parquet(out / name / "*.parquet") for name in (RECORDS_FILE, STARTS_FILE, EDGES_FILE)
    )

    ask = getattr(lake_graph, direction)
    answers = {start: ask([start]) for start in starts}
    expected = {
        (start, record.id, record.dataset, record.depth)
        for start, answer in answers.items()
        for record in answer.records
    }
    assert set(records.rows()) == expected
    assert records.height == len(expected) == summary.records
    assert set(told.rows()) == {(start, answer.verdict, len(answer.records)) for start, answer in answers.items()}
    whole = ask(starts)
    assert set(crossed.rows()) == {(edge.output, edge.input, edge.run) for edge in whole.edges}
    assert (summary.runs, summary.verdict) == (whole.runs, whole.verdict)


def headwater(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from provenance_store.cli.main import main; main()", *map(str, arguments)]
    environment = {**os.environ, "HEADWATER_HOME": str(home), "HEADWATER_SPARK__DRIVER_MEMORY": "1g"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=home)


def test_the_command_writes_a_folder_and_names_what_nobody_knows(workflow: Path, tmp_path: Path) -> None:
    edges = pl.read_parquet(workflow / "new" / "graph.parquet")
    starts, out = tmp_path / "starts.txt", tmp_path / "out"
    starts.write_text("\n".join(edges["output"].unique()))
    (workflow / "unfinished").mkdir()
    arguments = ("trace", "backward", workflow, "--starts", starts, "--out", out)
    done = headwater(tmp_path, *arguments, "--sources", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["verdict"], summary["edges"], summary["ends_only"]) == ("partial", None, True)
    assert [Path(folder).name for folder in summary["unfinished"]] == ["unfinished"]
    assert sorted(path.name for path in out.iterdir()) == [RECORDS_FILE, STARTS_FILE, "summary.json"]
    records = pl.read_parquet(out / RECORDS_FILE / "*.parquet")
    assert records.height == summary["records"]
    assert set(records["depth"]) == {2}

    starts.write_text("lake:nobody/1#a\nlake:nobody/1#b\n")
    done = headwater(tmp_path, *arguments)
    assert done.returncode == 1
    assert "No reduced graph has ever seen lake:nobody/1#a, lake:nobody/1#b" in done.stderr
    assert [path.name for path in out.iterdir()] == [UNKNOWN_FILE]
    assert (out / UNKNOWN_FILE).read_text() == starts.read_text()


def test_what_cannot_be_asked_is_told(spark_session: SparkSession, workflow: Path, tmp_path: Path) -> None:
    known = pl.read_parquet(workflow / "new" / "graph.parquet")["output"][0]
    with pytest.raises(InputError, match="depth 0"):
        BulkQuestion("backward", depth=0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    ask = {"starts": [known], "reduced": [workflow]}
    with pytest.raises(InputError, match=r"holds thesis\.tex"):
        run(spark_session, BulkQuestion("backward"), **ask, out=tmp_path / "full")
    with pytest.raises(InputError, match="cannot be written to"):
        run(spark_session, BulkQuestion("backward"), **ask, out=tmp_path / "full" / "thesis.tex")
    ask["starts"] = [f"lake:nobody/1#{n}" for n in range(8)]
    with pytest.raises(UnknownRecordError, match="and 3 more"):
        run(spark_session, BulkQuestion("backward"), **ask, out=tmp_path / "out")


def test_starts_are_read_from_text_and_from_parquet(tmp_path: Path) -> None:
    ids = ["lake:a/1#x", "lake:a/1#y z"]
    text = tmp_path / "starts.txt"
    text.write_bytes(b"lake:a/1#x\r\n\nlake:a/1#y z\nlake:a/1#x\n")
    assert read_starts(text) == ids
    for columns in ({"id": ids, "other": [1, 2]}, {"record": ids, "depth": [1, 2]}, {"whatever": ids}):
        table = tmp_path / f"{next(iter(columns))}.parquet"
        pl.DataFrame(columns).write_parquet(table)
        assert read_starts(table) == ids
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    pl.DataFrame({"id": ids}).write_parquet(folder / "part-0.parquet")
    assert read_starts(folder) == ids


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda _: None, "is missing"),
        (lambda path: path.write_text("\n \n"), "holds no record id"),
        (lambda path: path.write_bytes(b"\xff"), "neither Parquet nor UTF-8"),
        (lambda path: path.write_bytes(b"PAR1 and no more"), "cannot be read as Parquet"),
        (lambda path: pl.DataFrame({"a": ["x"], "b": ["y"]}).write_parquet(path), "has columns a, b"),
        (lambda path: pl.DataFrame({"id": ["x", None]}).write_parquet(path), "in every row"),
        (lambda path: pl.DataFrame({"id": [1]}).write_parquet(path), "as text"),
    ],
)
def test_a_file_without_starts_is_told(tmp_path: Path, write, message: str) -> None:
    write(tmp_path / "starts")
    with pytest.raises(InputError, match=message):
        read_starts(tmp_path / "starts")
