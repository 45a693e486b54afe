import json
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.runs import run_of, versions_that_started
from provenance_store.errors import InputError, JobError, TransportError
from provenance_store.lake import tweets
from provenance_store.model.ids import check_run


def connect(monkeypatch: pytest.MonkeyPatch, **told: Any) -> HeadwaterHook:
    connection = Connection(conn_id="lake", conn_type="headwater", **told)
    monkeypatch.setattr(HeadwaterHook, "get_connection", lambda *_: connection)
    return HeadwaterHook("lake")


def test_a_connection_goes_over_the_file_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "elsewhere.toml"
    config.write_text('lake = "/of/the/file"\n[kafka]\npartitions = 5\n[neo4j]\nuri = "neo4j+s://graph.example"\n')
    told = {"config": str(config), "lake": str(tmp_path / "lake"), "home": ""}
    settings = connect(monkeypatch, extra=json.dumps(told), password="of neo4j").settings
    assert settings.lake == tmp_path / "lake"
    assert settings.kafka.partitions == 5
    assert settings.neo4j.uri == "neo4j+s://graph.example"
    assert settings.neo4j_password() == "of neo4j"


def test_without_the_default_connection_the_environment_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AirflowNotFoundException

    monkeypatch.setattr(HeadwaterHook, "get_connection", refuse)
    monkeypatch.setenv("HEADWATER_LAKE", str(tmp_path / "mine"))
    assert HeadwaterHook().settings.lake == tmp_path / "mine"
    with pytest.raises(AirflowNotFoundException):
        _ = HeadwaterHook("another").settings


def test_applications_have_its_settings_and_nobody_elses(hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_KAFKA__PARTITIONS", "77")
    program = (
        "import sys, json; from provenance_store.settings import load_settings as s; sys.stderr.write('first\\nlast');"
        "print(json.dumps({'lake': str(s().lake), 'partitions': s().kafka.partitions}))"
    )
    said: list[str] = []
    monkeypatch.setattr(hook.log, "info", said.append)
    told = hook.run_application([sys.executable, "-c", program], "It")
    assert told == {"lake": str(hook.settings.lake), "partitions": 2}
    assert said == ["first", "last"]


def test_what_an_application_raises_is_raised_here(hook: HeadwaterHook) -> None:
    program = 'print(\'{"error": "The broker is away.", "kind": "TransportError"}\'); raise SystemExit(1)'
    with pytest.raises(TransportError, match="The broker is away"):
        hook.run_application([sys.executable, "-c", program], "It")
    with pytest.raises(JobError, match="It ended without a result"):
        hook.run_application([sys.executable, "-c", ""], "It")


def test_a_retry_reads_what_the_first_try_read(hook: HeadwaterHook) -> None:
    tweets.generate(hook.settings.lake, count=3, seed=1)
    first = hook.pin("run-1", ["tweets", "categories"])
    assert first == ["tweets/n3-s1", "categories/n3-s1"]
    tweets.generate(hook.settings.lake, count=4, seed=1)
    assert hook.pin("run-1", ["tweets", "categories"]) == first
    assert hook.pin("run-2", ["tweets"]) == ["tweets/n4-s1"]
    with pytest.raises(InputError):
        hook.pin("run-3", ["nothing"])


def test_runs_follow_from_the_dag_run() -> None:
    name = "scheduled__2026-11-18T01:02:03.000004+00:00"
    run = run_of("hashtag-count", "a_dag", name)
    assert run == run_of("hashtag-count", "a_dag", name)
    assert check_run(run).startswith("hashtag-count-scheduled-2026-11-18T01-02-03.000004-00-00-")
    others = [("category-totals", "a_dag", name), ("hashtag-count", "b_dag", name), ("hashtag-count", "a_dag", "x")]
    assert len({run, *(run_of(*other) for other in others)}) == 4
    check_run(run_of("d", "a", "ü" * 300 + ":"))
    check_run(run_of("d" * 100, "a", "r" * 200))


def test_the_version_of_the_last_event_is_read(context: dict[str, Any]) -> None:
    class Event:
        def __init__(self, **extra: Any) -> None:
            self.extra = extra

    context["triggering_asset_events"] = {
        "counts": [Event(version="hashtag_counts/a"), Event(version="hashtag_counts/b"), Event()],
        "other": [Event(other=1)],
    }
    assert versions_that_started(context) == {"hashtag_counts": "hashtag_counts/b"}
