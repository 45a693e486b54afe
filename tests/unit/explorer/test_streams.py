"""What the explorer tells of stream jobs, to whom, and what it writes down of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater_airflow.explorer import streams
from provenance_store.errors import InputError, JobError
from provenance_store.graph.audit import Audit
from provenance_store.settings import Settings
from tests.item_monitor import LINES, RUN, monitor_items


class User:
    def get_name(self) -> str:
        return "uma"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = monitor_items(tmp_path_factory.mktemp("monitor"))
    return Settings(home=home, lake=home / "lake")


@pytest.fixture(autouse=True)
def allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    told = {"may": True}
    monkeypatch.setattr(streams, "load_settings", lambda: settings)
    monkeypatch.setattr(streams, "is_allowed_to_purge", lambda _: told["may"])
    return told


def told(answer: Any) -> Any:
    assert answer.headers["cache-control"] == "no-store"
    return json.loads(answer.body)


def abnormal() -> dict[str, Any]:
    found = told(streams.results(run=RUN, user=User(), dataset="item-warnings"))["results"]
    return next(one for one in found if one["content"]["warning"] == "ABNORMAL")


def test_jobs_with_what_is_wrong_with_them() -> None:
    (job,) = told(streams.jobs())
    assert (job["run"], job["state"], job["faults"]) == (RUN, "finished", [])
    assert told(streams.lags()) == {}  # nothing is under way, so nobody asks Kafka


def test_contents_are_for_who_may_purge(allowed: dict[str, bool]) -> None:
    one = abnormal()
    assert one["content"]["visits"] == -2_147_483_639
    found = told(streams.sources(id=one["id"], user=User()))
    assert sorted(source["content"]["line"] for source in found["sources"]) == sorted(LINES)
    allowed["may"] = False
    hidden = told(streams.results(run=RUN, user=User()))
    assert hidden["may_see_contents"] is False
    assert all(result["content"] is None for result in hidden["results"])
    bare = told(streams.sources(id=one["id"], user=User()))
    assert [source["id"] for source in bare["sources"]] == [source["id"] for source in found["sources"]]
    assert all(source["content"] is None for source in bare["sources"])


def test_a_replay_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    one = abnormal()
    session = told(streams.replay(id=one["id"], user=User()))
    assert session["same"]
    assert [step["operator"] for step in session["steps"]][-2:] == ["visits", "warnings"]
    monkeypatch.setattr(streams, "MOST_STEPS", 2)
    with pytest.raises(InputError, match="headwater streams debug"):
        streams.replay(id=one["id"], user=User())


def test_what_a_function_says_in_its_error_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("someone@example.org")

    one = abnormal()
    monkeypatch.setattr(streams.service, "replay", fail)
    with pytest.raises(JobError, match="failed with ValueError") as failed:
        streams.replay(id=one["id"], user=User())
    assert failed.value.__cause__ is None
    assert "someone" not in str(failed.value)


def test_who_asked_is_kept_and_no_content_is(settings: Settings) -> None:
    one = abnormal()
    streams.sources(id=one["id"], user=User())
    streams.replay(id=one["id"], user=User())
    entries = list(Audit(settings).entries())[-3:]
    assert [entry.kind for entry in entries] == ["stream results", "stream sources", "stream replay"]
    assert {entry.who for entry in entries} == {"uma"}
    assert entries[1].asked == {"id": one["id"], "contents": True}
    for file in (settings.home / "audit").glob("*.jsonl"):
        assert "1769192" not in Path(file).read_text()
