"""Stream jobs that stand still, drop what comes or are ahead of the lake graph are told; others are not."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from provenance_store.health import streams
from provenance_store.settings import Settings
from provenance_store.streams import service
from provenance_store.streams.examples import find_example
from provenance_store.streams.folders import Begun, Workshop
from tests.item_monitor import RUN, monitor_items

QUERY = find_example("item-monitor").query


def job(**other: Any) -> service.Job:
    told: dict[str, Any] = {
        "run": "r", "query": "q", "state": "running", "until": 5, "late": 0, "rejected": 0, "read": (), "results": (),
        "heard": datetime.now(UTC),
    }  # fmt: skip
    return service.Job(**{**told, **other})


def test_a_run_that_is_under_way_and_silent_is_told() -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    found = [job(run="quiet", heard=long_ago), job(run="ended", heard=long_ago, state="finished"), job(run="at work")]
    (fault,) = streams.find_standing(found, minutes=60)
    assert fault.about == "quiet"
    assert "has not got on since" in fault.sentence
    assert list(streams.find_standing(found, minutes=180)) == []


def test_a_batch_is_heard_and_a_new_start_is_not(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, "r", QUERY)
    workshop.open(Begun())
    old = time.time() - 7200
    for path in [workshop.folder, *workshop.folder.rglob("*")]:
        os.utime(path, (old, old))
    (told,) = service.jobs(tmp_path, tmp_path / "lake")
    assert list(streams.find_standing([told], minutes=60))
    Workshop(tmp_path, "r", QUERY).open()
    (told,) = service.jobs(tmp_path, tmp_path / "lake")
    assert list(streams.find_standing([told], minutes=60))
    (workshop.checkpoint / "commits").mkdir(parents=True)
    (told,) = service.jobs(tmp_path, tmp_path / "lake")
    assert list(streams.find_standing([told], minutes=60)) == []


def test_a_share_of_what_came_is_what_counts(tmp_path: Path) -> None:
    settings = Settings(home=monitor_items(tmp_path), lake=tmp_path / "lake")
    (told,) = service.jobs(settings.home, settings.lake)
    assert service.count_events(settings.lake, RUN, QUERY) == 200
    dropping = [job(run=RUN, query=told.query, late=3, rejected=1)]
    assert list(streams.find_dropping(settings, [told])) == []
    assert list(streams.find_dropping(settings, dropping, share=0.02)) == []
    (fault,) = streams.find_dropping(settings, dropping, share=0.01)
    assert "of 204 events of item-monitor 3 came too late and 1 could not be read" in fault.sentence


def test_the_lag_of_a_live_topic_counts_while_its_query_runs() -> None:
    lags = {"headwater.live.q": 1_001, "headwater.live.other": 5_000}
    assert [one.about for one in streams.find_lagging([job()], lags, most=1_000)] == ["r"]
    assert list(streams.find_lagging([job(state="finished")], lags, most=1_000)) == []
    assert list(streams.find_lagging([job()], lags, most=1_001)) == []


def test_kafka_is_asked_only_where_something_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(home=tmp_path, lake=tmp_path / "lake")
    asked: list[Settings] = []
    monkeypatch.setattr(streams, "live_lags", lambda settings: asked.append(settings) or {})
    assert list(streams.check_streams(settings)) == []
    assert asked == []
    Workshop(tmp_path, "r", QUERY).open(Begun())
    assert list(streams.check_streams(settings)) == []
    assert asked == [settings]
