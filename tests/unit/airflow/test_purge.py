from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators import purge
from headwater_airflow.operators.purge import PurgeApprovalOperator, PurgePlanOperator
from headwater_airflow.plans import as_markdown
from provenance_store.errors import InputError
from provenance_store.lake import tweets
from provenance_store.lake.records import lines_of
from provenance_store.purge.approval import read_approval
from provenance_store.purge.plan import StoredPlan, open_plan


class Graph:
    """A lake graph in which nothing was made from anything."""

    def runs(self) -> list[Any]:
        return []

    def runs_about(self, _: Any) -> set[str]:
        return set()

    def consequences(self, *_: Any, **__: Any) -> Any:
        import pyarrow as pa

        from provenance_store.graph.consequences import Consequences

        return Consequences(pa.chunked_array([pa.array([], pa.string())]), [])

    def prefixes(self, _: Any) -> set[str]:
        return set()

    def count_liveness(self, _: Any) -> list[Any]:
        return []


@pytest.fixture
def lake(hook: HeadwaterHook, monkeypatch: pytest.MonkeyPatch) -> HeadwaterHook:
    @contextmanager
    def graph(**_: Any) -> Iterator[Graph]:
        yield Graph()

    tweets.generate(hook.settings.lake, count=5, seed=1)
    monkeypatch.setattr(hook, "lake_graph", graph)
    monkeypatch.setattr(purge, "HeadwaterHook", lambda _: hook)
    monkeypatch.setattr("provenance_store.purge.planning.find_topics", lambda *_: [])
    return hook


@pytest.fixture
def plan(lake: HeadwaterHook, context: dict[str, Any]) -> StoredPlan:
    record = next(iter(lines_of(tweets.generate(lake.settings.lake, count=5, seed=1))))[0]
    told = PurgePlanOperator(task_id="plan", records=[record, " "], reason="request 7 | <b>").run(context, lake)
    assert record not in told["markdown"]
    return open_plan(lake.settings.lake, told["plan"])


def test_a_plan_is_made_in_the_name_of_whoever_asks(plan: StoredPlan) -> None:
    assert plan.plan.by == "engineer"
    text = as_markdown(plan, reason="request 7 | <b>\nof today")
    assert "asked for by **engineer**" in text
    assert "Reason: request 7 \\| &lt;b> of today" in text
    assert "| tweets/n5-s1 | delete | 1 | 0 | 5 |  |" in text


@pytest.mark.parametrize(
    "given", [{}, {"selection": "s-1", "records": "lake:a/b#1"}, {"selection": " ", "records": ""}]
)
def test_a_plan_needs_a_selection_or_records(
    lake: HeadwaterHook, context: dict[str, Any], given: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="one of the two"):
        PurgePlanOperator(task_id="plan", **given).run(context, lake)


def approval(plan: StoredPlan, **kwargs: Any) -> PurgeApprovalOperator:
    with DAG("a_dag", params={"reason": Param("", type="string")}):
        return PurgeApprovalOperator(task_id="approve", subject="s", body="b", plan=plan.id, **kwargs)


def test_those_who_may_are_asked_and_never_the_one_who_asks(
    lake: HeadwaterHook, context: dict[str, Any], plan: StoredPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **told: asked.update(told))
    context["task_instance"] = SimpleNamespace(id="1")
    with pytest.raises(TaskAwaitingInput):
        approval(plan).execute(context)
    assert asked["assigned_users"] == [{"id": "officer", "name": "officer"}]
    assert list(asked["params"]) == ["despite"]
    context["dag_run"].triggering_user_name = "officer"
    with pytest.raises(AirflowFailException, match="nobody else may approve"):
        approval(plan).execute(context)
    assert lake.settings.purge.approvers == ["officer"]


@pytest.mark.parametrize("dry_run", [True, "True", "true"])
def test_a_dry_run_ends_with_its_plan(context: dict[str, Any], plan: StoredPlan, dry_run: bool | str) -> None:
    with pytest.raises(AirflowSkipException):
        approval(plan, dry_run=dry_run).execute(context)


def answered(by: str | None, option: str = "Approve") -> dict[str, Any]:
    user = None if by is None else {"id": by, "name": by}
    return {
        "chosen_options": [option],
        "params_input": {"despite": ""},
        "responded_at": datetime.now(UTC),
        "responded_by_user": user,
    }


def test_whoever_approves_is_written_to_the_plan(context: dict[str, Any], plan: StoredPlan) -> None:
    told = approval(plan).execute_complete(context, answered("officer"))
    assert told["approved_by"] == "officer"
    assert read_approval(plan).who == "officer"


@pytest.mark.parametrize("who", ["engineer", "viewer", "admin", None])
def test_nobody_else_may(context: dict[str, Any], plan: StoredPlan, who: str | None) -> None:
    with pytest.raises(AirflowFailException, match="may not approve"):
        approval(plan).execute_complete(context, answered(who))
    with pytest.raises(InputError, match="not approved"):
        read_approval(plan)


def test_a_rejected_plan_stays_as_it_is(context: dict[str, Any], plan: StoredPlan) -> None:
    assert approval(plan).execute_complete(context, answered("officer", "Reject")) is None
    with pytest.raises(InputError, match="not approved"):
        read_approval(plan)
