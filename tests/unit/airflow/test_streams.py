"""Stream jobs as tasks: for a while, taken up again, ended cleanly with their task."""

import copy
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators.health import CheckStreamsOperator
from headwater_airflow.operators.streams import FollowLiveOperator, HeadwaterStreamOperator
from provenance_store.errors import InputError, JobError
from provenance_store.graph import following
from provenance_store.services.application import listen
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.query import StreamQuery

GOES_ON = """
import time
from provenance_store.services.application import Stop, tell_progress
stop = Stop()
tell_progress("goes on")
while not stop():
    time.sleep(0.01)
tell_progress("ended cleanly")
"""


class Followed:
    """What was run; it goes on until it is over, or ends by itself."""

    def __init__(self, *, by_itself: bool = False) -> None:
        self.command: list[str] = []
        self.by_itself = by_itself
        self.began = threading.Event()

    def __call__(self, command: list[str], _: str, over: threading.Event) -> None:
        self.command = command
        self.began.set()
        assert self.by_itself or over.wait(30)


def operator(**other: Any) -> HeadwaterStreamOperator:
    return HeadwaterStreamOperator(task_id="job", run_id="alerts-1", **{"seconds": 0.05, **other})


def test_without_a_query_an_example_runs_with_its_live_provenance(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Followed()
    monkeypatch.setattr(hook, "follow_application", ran)
    assert operator().run(context, hook) == {"run": "alerts-1"}
    query = Path(next(one for one in ran.command if one.startswith("--query=")).removeprefix("--query="))
    assert StreamQuery.read(query).name == "item-monitor"
    assert ran.command[1:3] == ["-m", "spark_apps.streams"]
    assert {"--run=alerts-1", "--follow", "--live=exact", "--period=60000"} < set(ran.command)
    assert list((hook.settings.lake / "item-lines").rglob("*.jsonl"))
    # Tried again, it goes on with the same query, and tells how the run is.
    Workshop(hook.settings.home, "alerts-1", StreamQuery.read(query)).open(Begun())
    told = operator().run(context, hook)
    assert (told["run"], told["query"], told["state"]) == ("alerts-1", "item-monitor", "running")


def test_a_query_that_is_not_there_is_for_a_person_to_mend(hook: HeadwaterHook, context: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"There is no query at /nowhere/query\.json"):
        operator(query="/nowhere/query.json").run(context, hook)


def test_a_job_that_ends_by_itself_is_tried_again(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "follow_application", Followed(by_itself=True))
    with pytest.raises(JobError, match="ended by itself"):
        operator(seconds=60).run(context, hook)


def test_killed_with_its_task_it_ends_and_is_tried_again(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Followed()
    monkeypatch.setattr(hook, "follow_application", ran)
    one = operator(seconds=60)
    copy.deepcopy(one)  # as Airflow does
    killing = threading.Thread(target=lambda: ran.began.wait(30) and one.on_kill())
    killing.start()
    with pytest.raises(JobError, match="was asked to end with its task"):
        one.run(context, hook)
    killing.join()


def test_an_application_is_asked_to_end_and_has_time_for_it(hook: HeadwaterHook) -> None:
    said: list[str] = []
    over = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        over.set()

    assert list(listen([sys.executable, "-c", GOES_ON], "It", say, hook.environment(), over=over)) == []
    assert said == ["goes on", "ended cleanly"]


def test_one_that_had_not_begun_to_listen_is_ended_without_a_failure() -> None:
    over = threading.Event()
    threading.Timer(0.2, over.set).start()
    began = time.monotonic()
    assert list(listen([sys.executable, "-c", "import time; time.sleep(60)"], "It", print, over=over)) == []
    assert time.monotonic() - began < 30


def test_what_is_told_live_is_followed_for_a_while(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Graph:
        def __enter__(self) -> "Graph":
            return self

        def __exit__(self, *_: object) -> None: ...

    def follow(settings: Any, graph: Any, *, stopped: Any) -> following.Progress:
        while not stopped():
            time.sleep(0.01)
        return following.Progress(messages=3)

    monkeypatch.setattr(hook, "get_conn", Graph)
    monkeypatch.setattr(following, "follow_live", follow)
    assert FollowLiveOperator(task_id="follow", seconds="0.05").run(context, hook)["messages"] == 3


def test_health_names_what_stands_still(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from provenance_store.health import streams
    from provenance_store.streams.examples import find_example

    monkeypatch.setattr(streams, "live_lags", lambda _: {"headwater.live.item-monitor": 7})
    Workshop(hook.settings.home, "alerts-1", find_example("item-monitor").query).open(Begun())
    CheckStreamsOperator(task_id="health").run(context, hook)
    with pytest.raises(InputError, match=r"alerts-1: 7 live messages of item-monitor"):
        CheckStreamsOperator(task_id="health", most_behind=5).run(context, hook)
