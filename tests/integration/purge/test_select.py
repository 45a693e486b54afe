"""Selecting by a predicate, on Spark: the right records, and no trace of the predicate."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.layout import Version
from provenance_store.lake.places import Places
from provenance_store.purge.selection import Selection, read_ids
from provenance_store.settings import Settings
from spark_apps.purge.select import select_where
from tests.handmade import put, tell

SECRET = "ann_o'nymous"
QUOTED = SECRET.replace("'", r"\'")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", lake=tmp_path / "lake")


def write(root: Path, reference: str, file: str, content: bytes) -> Version:
    version = layout.version_of(root, *reference.split("/"))
    with layout.new_version(version, {}) as folder:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return version


def select(spark: SparkSession, settings: Settings, dataset: str, predicate: str) -> tuple[Selection, list[str]]:
    selection = select_where(spark, settings, dataset, predicate, by="eve")
    return selection, read_ids(settings.lake, selection.id).to_list()


def test_json_lines_of_all_versions(spark_session: SparkSession, settings: Settings) -> None:
    tell(settings.lake, '[tweets]\nformat = "jsonl"\npolicy = { do = "delete" }\n')
    lines = [json.dumps({"handle": SECRET, "text": "ä"}, ensure_ascii=False), "", '{"handle":"bob","likes":3}']
    write(settings.lake, "tweets/v1", "a b.jsonl", "\n".join(lines).encode())
    write(settings.lake, "tweets/v2", "day=1/x.jsonl", b'{"handle":"bob"}\n')
    write(settings.lake, "tweets/empty", "_note", b"")
    selection, ids = select(spark_session, settings, "tweets", f"handle = '{QUOTED}'")
    assert ids == ["lake:tweets/v1/a%20b.jsonl#0"]
    assert (selection.how, selection.datasets) == ("where", {"tweets": 1})
    # a column that one version lacks is null there
    place = len(lines[0].encode()) + 2
    assert select(spark_session, settings, "tweets", "likes > 2")[1] == [f"lake:tweets/v1/a%20b.jsonl#{place}"]
    assert select(spark_session, settings, "tweets", "handle = 'bob' AND likes IS NULL")[1] == [
        "lake:tweets/v2/day=1/x.jsonl#0"
    ]


def test_csv_and_text_by_the_columns_of_the_catalogue(spark_session: SparkSession, settings: Settings) -> None:
    tell(
        settings.lake,
        '[table]\nformat = "csv"\ncolumns = ["who", "age"]\npolicy = { do = "delete" }\n'
        '[counts]\nformat = "text"\ncolumns = ["tag", "n"]\nseparator = "\\t"\npolicy = { do = "delete" }\n'
        '[lines]\nformat = "text"\npolicy = { do = "delete" }\n',
    )
    write(settings.lake, "table/v", "t.csv", b'"o, ann",41\r\nbob,7\n')
    write(settings.lake, "counts/v", "c", b"a\t10\nb\t9\n")
    write(settings.lake, "lines/v", "l", b"one\ntwo\n")
    assert select(spark_session, settings, "table", "who = 'o, ann' AND age > 40")[1] == ["lake:table/v/t.csv#0"]
    assert select(spark_session, settings, "counts", "n < 10")[1] == ["lake:counts/v/c#5"]
    assert select(spark_session, settings, "lines", "value LIKE 't%'")[1] == ["lake:lines/v/l#4"]


def test_rows_of_parquet(spark_session: SparkSession, settings: Settings, tmp_path: Path) -> None:
    tell(settings.lake, '[rows]\nformat = "parquet"\npolicy = { do = "delete" }\n')
    pl.DataFrame({"n": range(10)}).write_parquet(tmp_path / "rows.parquet", row_group_size=3)
    write(settings.lake, "rows/v", "r.parquet", (tmp_path / "rows.parquet").read_bytes())
    assert select(spark_session, settings, "rows", "n % 4 = 3")[1] == [
        "lake:rows/v/r.parquet#3",
        "lake:rows/v/r.parquet#7",
    ]


def test_records_of_rewritten_files_have_the_ids_they_had(
    spark_session: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    tell(
        settings.lake,
        '[lines]\nformat = "text"\npolicy = { do = "delete" }\n'
        '[rows]\nformat = "parquet"\npolicy = { do = "delete" }\n',
    )
    lines = put(settings.lake, "lines/v", ["bb", "cc"])
    Places.unmoved(9).rewritten([0, 3, 6], [-1, 0, 3], end=6).write(lines, lines.files()[0])
    pl.DataFrame({"n": [1, 2]}).write_parquet(tmp_path / "rows.parquet")
    rows = write(settings.lake, "rows/v", "r.parquet", (tmp_path / "rows.parquet").read_bytes())
    Places.unmoved(3).rewritten([0, 1, 2], [-1, 0, 1], end=2).write(rows, rows.files()[0])
    assert select(spark_session, settings, "lines", "value = 'cc'")[1] == ["lake:lines/v/part-0.txt#6"]
    assert select(spark_session, settings, "rows", "n = 2")[1] == ["lake:rows/v/r.parquet#2"]


@pytest.fixture
def people(settings: Settings) -> Settings:
    tell(
        settings.lake,
        '[people]\nformat = "text"\ncolumns = ["name", "age"]\nseparator = "\\t"\npolicy = { do = "delete" }\n',
    )
    put(settings.lake, "people/v", [f"{SECRET}\t41", "bob\tunknown_to_us"])
    return settings


@pytest.mark.parametrize(
    ("predicate", "reason"),
    [
        (f"nobody = '{QUOTED}'", "UNRESOLVED_COLUMN"),
        (SECRET.partition("'")[0], "UNRESOLVED_COLUMN"),  # quotes forgotten
        (f"name = = '{QUOTED}'", "PARSE_SYNTAX_ERROR"),
        (f"name = '{SECRET}'", "no Spark SQL expression"),  # a quote in the text not doubled
        (f"concat(name, '{QUOTED}')", "DATATYPE_MISMATCH"),
        (f"frobnicate('{QUOTED}')", "UNRESOLVED_ROUTINE"),
        (f"reflect('java.lang.System', 'getenv', '{QUOTED}') IS NULL", "UNRESOLVED_ROUTINE"),
        (f"name = '{QUOTED}' AND cast(age AS int) > 400 OR cast(age AS int) = 7", "CAST_INVALID_INPUT"),
        (f"count(name) = '{QUOTED}'", "Spark refused it"),
        ("", "no Spark SQL expression"),
    ],
)
def test_a_predicate_that_cannot_be_followed_is_not_quoted(
    spark_session: SparkSession, people: Settings, predicate: str, reason: str, caplog
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InputError, match=reason) as error:
        select_where(spark_session, people, "people", predicate, by="eve")
    assert "'people' has the columns name, age." in str(error.value)
    told = [str(error.value), repr(error.value.__cause__), repr(error.value.__context__), caplog.text]
    assert not [text for text in told if "nymous" in text or "unknown_to_us" in text]
    assert not (people.lake / "_purges").exists()


@pytest.mark.parametrize(
    ("predicate", "reason"),
    [
        (f"name = '{QUOTED}' AND EXISTS (SELECT 1)", "about one record"),
        (f"name = 'z{QUOTED}'", "No record of 'people' is such"),
        # Spark reads this as another name, ann_onymous.
        ("name = '{}'".format(SECRET.replace("'", "''")), "not doubled"),
        ('name = \'\' AND name = "a""nymous"', "not doubled"),
        (rf"name = '' AND age = '\\' OR age = r'\' OR name = 'z{QUOTED}'", "No record of 'people' is such"),
    ],
)
def test_a_predicate_is_about_records_that_there_are(
    spark_session: SparkSession, people: Settings, predicate: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as error:
        select_where(spark_session, people, "people", predicate, by="eve")
    assert "nymous" not in str(error.value)


def test_spark_keeps_no_plan_of_it(spark_session: SparkSession, people: Settings) -> None:
    select_where(spark_session, people, "people", f"name = '{QUOTED}'", by="eve")
    store = spark_session._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    kept = []
    for place in range(executions.size()):
        execution = executions.apply(place)
        graph = store.planGraph(execution.executionId()).makeDotFile(store.executionMetrics(execution.executionId()))
        kept += [execution.physicalPlanDescription(), execution.description(), execution.details(), graph]
    assert not [text for text in kept if "nymous" in text]
    kept = b"".join(path.read_bytes() for path in (people.lake / "_purges").rglob("*") if path.is_file())
    assert b"nymous" not in kept


def test_an_unknown_dataset_is_refused(spark_session: SparkSession, people: Settings) -> None:
    with pytest.raises(InputError, match="'places' is not in"):
        select_where(spark_session, people, "places", "true", by="eve")
    tell(people.lake, '[places]\nformat = "text"\npolicy = { do = "delete" }\n')
    with pytest.raises(InputError, match="no dataset 'places'"):
        select_where(spark_session, people, "places", "true", by="eve")


def test_the_command_line_leaves_no_trace_of_it_either(people: Settings, tmp_path: Path) -> None:
    """Even where Spark is told to write its event log."""
    events = tmp_path / "events"
    events.mkdir()
    environment = {
        **os.environ,
        "HEADWATER_HOME": str(people.home),
        "HEADWATER_LAKE": str(people.lake),
        "HEADWATER_SPARK__CONF": json.dumps(
            {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{events}"}
        ),
    }
    headwater = [sys.executable, "-c", "from provenance_store.cli.main import main; main()"]
    done = subprocess.run(
        [*headwater, "purge", "select", "--dataset=people", "--where-file=-", "--by=eve", "--json"],
        input=f"name = '{QUOTED}'\n",
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["datasets"] == {"people": 1}
    assert "nymous" not in done.stdout + done.stderr
    assert list(events.iterdir()) == []
