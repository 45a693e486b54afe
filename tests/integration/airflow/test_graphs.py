import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators.graphs import MergeOperator, TraceOperator
from headwater_airflow.operators.health import CheckCompletenessOperator, CheckRetentionOperator
from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.settings import RetentionSettings, Settings
from tests.reduced import write_reduced

COUNT, TWEETS = "lake:counts/r/part#0", ["lake:tweets/v/part#0", "lake:tweets/v/part#9"]
CONTEXT: Any = {"dag_run": SimpleNamespace(dag_id="d", run_id="r", triggering_user_name="engineer")}


@pytest.fixture
def hook(neo4j_service: Settings, tmp_path: Path) -> HeadwaterHook:
    made = HeadwaterHook()
    # The home is that of the server, which has its password.
    update = {"lake": tmp_path / "lake", "retention": RetentionSettings(days=1)}
    made.__dict__["settings"] = neo4j_service.model_copy(update=update)
    return made


def test_a_run_is_merged_once_and_asked_about(
    hook: HeadwaterHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeadwaterHook, "reduced_folder", lambda _, run: tmp_path / run)
    write_reduced(tmp_path / "airflow-1", "airflow-1", [(COUNT, tweet) for tweet in TWEETS])
    merge = MergeOperator(task_id="merge", dic="count", run_id="airflow-1")
    assert merge.run(CONTEXT, hook)["changed"]
    assert not merge.run(CONTEXT, hook)["changed"]

    out = tmp_path / "answers" / "back.json"
    told = TraceOperator(task_id="trace", ids=[COUNT], out=str(out)).run(CONTEXT, hook)
    assert (told["records"], told["verdict"], told["out"]) == (2, "complete", str(out))
    assert {one["id"] for one in json.loads(out.read_text())["records"]} == set(TWEETS)
    forth = TraceOperator(task_id="trace", ids=TWEETS[0], direction="forward", to="counts").run(CONTEXT, hook)
    assert forth["records"] == 1
    with pytest.raises(UnknownRecordError):
        TraceOperator(task_id="trace", ids=["lake:tweets/v/part#1"]).run(CONTEXT, hook)


def test_health_goes_by_the_graph(hook: HeadwaterHook, tmp_path: Path) -> None:
    with hook.get_conn() as graph:
        graph.merge(write_reduced(tmp_path / "gaps", "airflow-gaps", [(COUNT, TWEETS[0])], verdict="partial"))
    with pytest.raises(InputError, match="airflow-gaps: what the lake graph knows of this run"):
        CheckCompletenessOperator(task_id="completeness").run(CONTEXT, hook)
    CheckRetentionOperator(task_id="retention").run(CONTEXT, hook)
