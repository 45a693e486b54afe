import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, TaskDeferred
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators import reduce as reduce_module
from headwater_airflow.operators.reduce import ReduceRunOperator
from headwater_airflow.runs import given_up_at_last, run_in
from headwater_airflow.triggers.reduced import RunReducedTrigger
from provenance_store.errors import InputError, JobError, TransportError
from provenance_store.lake import layout
from provenance_store.model.account import Account
from provenance_store.services.beside import Outcome

ACCOUNT = Account(
    run="r", dic="hashtag-count", verdict="complete", messages=1, bytes=1, edges_in=1, edges_local=1, edges_out=1,
    duplicates=0, discarded=0, rejected=0, missing={}, seconds=1.0, generation=5,
)  # fmt: skip


def reduced(folder: Path, **other: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    msgspec.structs.replace(ACCOUNT, **other).write(folder)
    return folder


def written(lake: Path, run: str, generation: int) -> Path:
    version = layout.version_of(lake, "hashtag_counts", run)
    with layout.new_version(version, {"run": run, "generation": generation}) as folder:
        (folder / "part-00000").touch()
    return version.path


def said(folder: Path, outcome: Outcome) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "outcome.json").write_bytes(msgspec.json.encode(outcome))
    return folder


def trigger(tmp_path: Path, *versions: Path) -> RunReducedTrigger:
    return RunReducedTrigger(
        folder=str(tmp_path / "r"), beside=str(tmp_path / "beside"), versions=list(map(str, versions)), seconds=0.01
    )


def test_a_trigger_is_made_again_as_it_was(tmp_path: Path) -> None:
    one = trigger(tmp_path, tmp_path / "version")
    path, kwargs = one.serialize()
    assert path == "headwater_airflow.triggers.reduced.RunReducedTrigger"
    assert RunReducedTrigger(**json.loads(json.dumps(kwargs))).serialize() == (path, kwargs)


def test_it_waits_for_the_reducer_and_then_for_the_versions(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "beat").touch()
    one = trigger(tmp_path, tmp_path / "lake" / "hashtag_counts" / "r")
    assert one.look() is None
    reduced(tmp_path / "r")
    said(tmp_path / "beside", Outcome())
    assert one.look() is None
    written(tmp_path / "lake", "r", 5)

    async def first() -> Any:
        return await anext(aiter(one.run()))

    assert asyncio.run(first()).payload == {"reduced": str(tmp_path / "r")}


def test_it_does_not_wait_for_a_run_that_was_given_up(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "beat").touch()
    task = SimpleNamespace(task_id="count", try_number=2, max_tries=2)
    with pytest.raises(JobError), given_up_at_last({"ti": task}, tmp_path):
        raise JobError("a try is left")
    assert trigger(tmp_path).look() is None
    task.try_number = 3
    with pytest.raises(JobError), given_up_at_last({"ti": task}, tmp_path):
        raise JobError("no more")
    told = trigger(tmp_path).look()
    assert told is not None
    assert "task count has failed and is not tried again" in told["error"]
    assert (tmp_path / "beside" / "stop").exists()
    with given_up_at_last({"ti": task}, tmp_path):  # cleared by hand
        pass
    assert trigger(tmp_path).look() is None


def test_a_later_execution_makes_it_stale_and_an_incomplete_one_is_told_at_once(tmp_path: Path) -> None:
    said(tmp_path / "beside", Outcome())
    reduced(tmp_path / "r")
    one = trigger(tmp_path, written(tmp_path / "lake", "r", 6))
    assert one.look() == {"stale": str(tmp_path / "r")}
    reduced(tmp_path / "r", verdict="partial")
    assert trigger(tmp_path, tmp_path / "not yet").look() == {"reduced": str(tmp_path / "r")}


def test_a_reducer_that_failed_or_went_is_told(tmp_path: Path) -> None:
    assert "went without a word" in (trigger(tmp_path).look() or {})["error"]
    said(tmp_path / "beside", Outcome(error="No.", kind="InputError"))
    assert trigger(tmp_path).look() == {"error": "No.", "kind": "InputError"}
    asyncio.run(trigger(tmp_path).on_kill())
    assert (tmp_path / "beside" / "stop").exists()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []
    monkeypatch.setattr(reduce_module, "make_topics", lambda *_, **__: None)
    monkeypatch.setattr(reduce_module.beside, "start", lambda command, *_: found.append(list(command)))
    return found


def operator() -> ReduceRunOperator:
    return ReduceRunOperator(task_id="reduce", dic="hashtag-count", outputs=["hashtag_counts"], timeout_seconds=30)


def test_it_starts_the_reducer_and_holds_no_worker(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]]
) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        operator().run(context, hook)
    run = run_in(context, "hashtag-count")
    assert f"--run={run}" in started[0]
    assert "--topic=headwater.hashtag-count" in started[0]
    assert isinstance(deferred.value.trigger, RunReducedTrigger)
    assert deferred.value.trigger.versions == [str(hook.settings.lake / "hashtag_counts" / run)]


def test_where_tasks_go_one_by_one_it_comes_back_when_the_run_is_there(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", object.__new__(InProcessSupervisorComms), raising=False)
    with pytest.raises(AirflowRescheduleException):
        operator().run(context, hook)
    assert started == []
    written(hook.settings.lake, run_in(context, "hashtag-count"), 5)
    with pytest.raises(TaskDeferred):
        operator().run(context, hook)
    assert len(started) == 1


def test_where_tasks_go_one_by_one_it_does_not_come_back_for_a_run_that_was_given_up(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", object.__new__(InProcessSupervisorComms), raising=False)
    task = SimpleNamespace(task_id="count", try_number=1, max_tries=2)
    folder = hook.run_folder(run_in(context, "hashtag-count"))
    with pytest.raises(InputError), given_up_at_last({"ti": task}, folder):
        raise InputError("a person has to mend it")
    with pytest.raises(InputError, match="task count has failed and is not tried again"):
        operator().run(context, hook)
    assert started == []


def test_tried_again_it_takes_what_is_there(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]]
) -> None:
    run = run_in(context, "hashtag-count")
    reduced(hook.reduced_folder(run), run=run, missing={})
    written(hook.settings.lake, run, 5)
    told = operator().run(context, hook)
    assert (told["verdict"], told["missing"], told["folder"]) == ("complete", 0, str(hook.reduced_folder(run)))
    assert started == []


@pytest.mark.parametrize("verdict", ["partial", "unknown"])
def test_tried_again_an_incomplete_graph_is_reduced_again(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]], verdict: str
) -> None:
    reduced(hook.reduced_folder(run_in(context, "hashtag-count")), verdict=verdict)
    with pytest.raises(TaskDeferred):
        operator().run(context, hook)
    assert len(started) == 1


def test_what_woke_it_decides(
    hook: HeadwaterHook, context: dict[str, Any], started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduce_module, "HeadwaterHook", lambda _: hook)
    folder = reduced(hook.reduced_folder(run_in(context, "hashtag-count")))
    assert operator().execute_complete(context, {"reduced": str(folder)})["edges_out"] == 1
    with pytest.raises(TaskDeferred):
        operator().execute_complete(context, {"stale": str(folder)})
    assert len(started) == 1
    with pytest.raises(TransportError, match="away"):
        operator().execute_complete(context, {"error": "The broker is away.", "kind": "TransportError"})
    with pytest.raises(AirflowFailException, match="wrong"):
        operator().execute_complete(context, {"error": "It is wrong.", "kind": "InputError"})
