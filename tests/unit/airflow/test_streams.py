"""Stream jobs as tasks: started beside, watched, started again where they ended, ended with a task that is gone."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from typer.testing import CliRunner

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators import streams as streams_module
from headwater_airflow.operators.health import CheckStreamsOperator
from headwater_airflow.operators.streams import FollowLiveOperator, HeadwaterStreamOperator
from headwater_airflow.triggers.goes_on import GoesOnTrigger
from provenance_store.cli.main import app
from provenance_store.errors import InputError, JobError
from provenance_store.services.beside import stream_folder
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.query import StreamQuery

GOES_ON = """
import sys, time
from provenance_store.services.application import Stop, tell_progress
stop = Stop()
tell_progress("begun")
while not stop():
    time.sleep(0.01)
sys.stderr.write("ended cleanly")
"""


def operator(**other: Any) -> HeadwaterStreamOperator:
    return HeadwaterStreamOperator(task_id="job", run_id="alerts-1", **other)


def begun(operator: Any, hook: HeadwaterHook) -> GoesOnTrigger:
    """What the task waits for."""
    with pytest.raises(TaskDeferred) as deferred:
        operator.run({}, hook)
    assert deferred.value.method_name == "execute_complete"
    trigger = deferred.value.trigger
    assert isinstance(trigger, GoesOnTrigger)
    return trigger


def wait_until_said(word: Path, sentence: bytes) -> None:
    deadline = time.monotonic() + 60
    while not (word / "log").exists() or sentence not in (word / "log").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def going(hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch) -> GoesOnTrigger:
    """A job that goes on, with a program of ours in the place of Spark's."""
    monkeypatch.setattr(HeadwaterStreamOperator, "command", lambda *_: [sys.executable, "-c", GOES_ON])
    trigger = begun(operator(), hook)
    wait_until_said(stream_folder(hook.settings.home, "alerts-1"), b"begun")
    return trigger


def test_without_a_query_an_example_runs_with_its_live_provenance(
    hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Any, ...]] = []
    monkeypatch.setattr(streams_module.beside, "start", lambda *given: started.append(given))
    trigger = begun(operator(seconds="60"), hook)
    command, what, word, environment = started[0]
    query = Path(next(one for one in command if one.startswith("--query=")).removeprefix("--query="))
    assert StreamQuery.read(query).name == "item-monitor"
    assert command[1:3] == ["-m", "spark_apps.streams"]
    assert {"--run=alerts-1", "--follow", "--live=exact", "--period=60000"} < set(command)
    assert (what, word) == ("The stream job alerts-1", stream_folder(hook.settings.home, "alerts-1"))
    assert environment == hook.environment()
    assert list((hook.settings.lake / "item-lines").rglob("*.jsonl"))
    assert 50 < trigger.until - time.time() <= 60
    Workshop(hook.settings.home, "alerts-1", StreamQuery.read(query)).open(Begun())
    told = operator().tell(hook)
    assert (told["run"], told["query"], told["state"]) == ("alerts-1", "item-monitor", "running")


def test_a_query_that_is_not_there_is_for_a_person_to_mend(hook: HeadwaterHook, context: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"There is no query at /nowhere/query\.json"):
        operator(query="/nowhere/query.json").run(context, hook)


def test_a_trigger_is_made_again_as_it_was(tmp_path: Path) -> None:
    path, kwargs = GoesOnTrigger(beside=str(tmp_path), until=1.5).serialize()
    assert path == "headwater_airflow.triggers.goes_on.GoesOnTrigger"
    assert GoesOnTrigger(**json.loads(json.dumps(kwargs))).serialize() == (path, kwargs)


def test_a_job_that_goes_on_is_left_alone_and_its_task_ends_well(going: GoesOnTrigger, hook: HeadwaterHook) -> None:
    assert going.look() is None
    again = begun(operator(seconds=0), hook)

    async def first() -> Any:
        return await anext(aiter(again.run()))

    event = asyncio.run(first()).payload
    assert event == {"goes_on": again.beside}
    assert Path(again.beside, "log").read_bytes().count(b"begun") == 1
    assert operator().execute_complete({}, event)["run"] == "alerts-1"
    asyncio.run(going.on_kill())  # someone took the task away
    wait_until_said(Path(going.beside), b"ended cleanly")


def test_one_that_has_ended_fails_its_task_whose_retry_starts_it_again(
    going: GoesOnTrigger, hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("provenance_store.cli.streams.load_settings", lambda: hook.settings)
    done = CliRunner().invoke(app, ["streams", "stop", "alerts-1"])
    assert done.exit_code == 0, done.output
    event = going.look()
    assert event is not None
    with pytest.raises(JobError, match="asked to stop"):
        operator().execute_complete({}, event)
    again = begun(operator(), hook)
    deadline = time.monotonic() + 60
    while Path(again.beside, "log").read_bytes().count(b"begun") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert again.look() is None
    asyncio.run(again.on_kill())


def test_what_ended_without_an_error_should_not_have(tmp_path: Path) -> None:
    word = tmp_path / "it"
    word.mkdir()
    (word / "outcome.json").write_text("{}")
    event = GoesOnTrigger(beside=str(word), until=0).look()
    with pytest.raises(JobError, match="ended by itself"):
        operator().execute_complete({}, event or {})
    (word / "outcome.json").write_text('{"error": "No such topic.", "kind": "InputError"}')
    with pytest.raises(AirflowFailException, match="No such topic"):
        operator().execute_complete({}, GoesOnTrigger(beside=str(word), until=0).look() or {})


def test_only_a_job_that_goes_on_can_be_stopped(hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provenance_store.cli.streams.load_settings", lambda: hook.settings)
    done = CliRunner().invoke(app, ["streams", "stop", "alerts-1"])
    assert isinstance(done.exception, InputError)
    assert "The job of run 'alerts-1' does not go on" in str(done.exception)
    done = CliRunner().invoke(app, ["streams", "stop"])
    assert "What follows live provenance does not go on" in str(done.exception)


def test_what_is_told_live_is_followed_beside(hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Any, ...]] = []
    monkeypatch.setattr(streams_module.beside, "start", lambda *given: started.append(given))
    begun(FollowLiveOperator(task_id="follow"), hook)
    command, _, word, _ = started[0]
    assert command[-2:] == ["streams", "follow-live"]
    assert word == hook.settings.home / "following"
    assert FollowLiveOperator(task_id="follow").execute_complete({}, {"goes_on": str(word)}) is None


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
