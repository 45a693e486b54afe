import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from airflow.sdk import Asset, Connection
from airflow.sdk.exceptions import AirflowFailException

from headwater_airflow.assets import lake_asset
from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators import base
from headwater_airflow.operators.dics import RunHadoopDicOperator, RunSparkDicOperator
from headwater_airflow.operators.gates import GateOperator
from headwater_airflow.operators.graphs import MergeOperator
from headwater_airflow.operators.ingest import GenerateOperator
from headwater_airflow.runs import run_in
from provenance_store.errors import InputError, TransportError
from provenance_store.lake import tweets
from provenance_store.lake.layout import resolve
from tests.reduced import write_reduced

COUNTS = lake_asset("hashtag_counts")


class Ran:
    """What a DIC was asked, and what it says."""

    def __init__(self, outputs: list[str]) -> None:
        self.outputs = outputs
        self.arguments: list[str] = []
        self.more: dict[str, str] = {}

    def __call__(self, dic: str, arguments: list[str], more: dict[str, str]) -> dict[str, Any]:
        self.arguments, self.more = arguments, more
        inputs = [one.removeprefix("--input=") for one in arguments if one.startswith("--input=")]
        return {"dic": dic, "inputs": inputs, "outputs": self.outputs, "paths": ["/a/folder"]}


@pytest.fixture
def ran(hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Ran:
    tweets.generate(hook.settings.lake, count=3, seed=1)
    made = Ran([f"hashtag_counts/{run_in(context, 'hashtag-count')}"])
    monkeypatch.setattr(hook, "run_dic", made)
    return made


def test_a_dic_is_run_on_versions_and_tells_its_outlets(hook: HeadwaterHook, context: dict[str, Any], ran: Ran) -> None:
    context["outlet_events"] = defaultdict(SimpleNamespace)
    operator = RunHadoopDicOperator(
        task_id="count", dic="hashtag-count", inputs=["tweets"], outlets=[COUNTS, Asset("x")], framework="yarn"
    )
    told = operator.run(context, hook)
    run = run_in(context, "hashtag-count")
    assert ran.arguments == [f"--run={run}", "--policy=fail", "--input=tweets/n3-s1"]
    assert json.loads(ran.more["HEADWATER_HADOOP"])["framework"] == "yarn"
    assert "paths" not in told
    assert {asset.name: event.extra for asset, event in context["outlet_events"].items()} == {
        "hashtag_counts": {"version": f"hashtag_counts/{run}"}
    }
    lineage = operator.get_openlineage_facets_on_complete(None)
    assert [(one.namespace, one.name) for one in lineage.inputs] == [("lake", "tweets")]
    assert [(one.namespace, one.name) for one in lineage.outputs] == [("lake", "hashtag_counts")]


def test_a_dic_reads_the_version_that_started_it(hook: HeadwaterHook, context: dict[str, Any], ran: Ran) -> None:
    tweets.generate(hook.settings.lake, count=4, seed=1)
    context["triggering_asset_events"] = {"tweets": [SimpleNamespace(extra={"version": "tweets/n3-s1"})]}
    RunSparkDicOperator(task_id="total", dic="hashtag-count", inputs=["tweets", "categories"]).run(context, hook)
    assert ran.arguments[2:] == ["--input=tweets/n3-s1", "--input=categories/n4-s1"]


def test_the_master_of_a_spark_connection_is_taken(
    hook: HeadwaterHook, context: dict[str, Any], ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection(conn_id="s", conn_type="spark", host="spark://master.example", port=7077)
    monkeypatch.setattr("headwater_airflow.operators.dics.BaseHook.get_connection", lambda _: connection)
    operator = RunSparkDicOperator(
        task_id="total", dic="hashtag-count", inputs=["tweets"], spark_conn_id="s", conf={"spark.executor.memory": "8g"}
    )
    operator.run(context, hook)
    told = json.loads(ran.more["HEADWATER_SPARK"])
    assert (told["master"], told["conf"]) == ("spark://master.example:7077", {"spark.executor.memory": "8g"})


def test_what_a_person_must_mend_is_not_tried_again_and_the_rest_is() -> None:
    with pytest.raises(AirflowFailException, match="mend"), base.failing_plainly():
        raise InputError("mend this")
    with pytest.raises(TransportError), base.failing_plainly():
        raise TransportError("away for a while")


def test_an_ingest_is_one_version_of_its_dag_run(hook: HeadwaterHook, context: dict[str, Any]) -> None:
    operator = GenerateOperator(task_id="ingest", what="tweets", count="5", seed="1")
    reference = operator.run(context, hook)
    assert operator.run(context, hook) == reference
    assert reference == f"tweets/{run_in(context, 'tweets')}"
    assert resolve(hook.settings.lake, reference).exists()
    orders = GenerateOperator(task_id="ingest", what="orders", count=5, seed=1).run(context, hook)
    assert resolve(hook.settings.lake, orders).exists()


def test_a_gate_names_columns_and_no_values(hook: HeadwaterHook, context: dict[str, Any]) -> None:
    made = tweets.generate(hook.settings.lake, count=5, seed=1)
    assert GateOperator(task_id="gate", versions=made.reference).run(context, hook) == ["tweets/n5-s1"]
    (made.path / "part-00000.jsonl").write_text('{"handle": null, "text": "a secret"}\n')
    with pytest.raises(InputError, match="handle") as refused:
        GateOperator(task_id="gate", versions=["tweets"]).run(context, hook)
    assert "a secret" not in str(refused.value)


def test_a_merge_tells_which_version_is_new(
    hook: HeadwaterHook, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(context, "hashtag-count")
    edges = [("lake:hashtag_counts/v/f#0", "lake:tweets/v/f#0")]
    write_reduced(hook.reduced_folder(run), run, edges, dic="hashtag-count")
    merged: list[Path] = []

    class Graph:
        def __enter__(self) -> "Graph":
            return self

        def __exit__(self, *_: object) -> None: ...

        def merge(self, folder: Path) -> Any:
            from provenance_store.graph.merge import Merged

            merged.append(folder)
            return Merged(run=run, generation=0, edges=1, changed=True, replaced=False)

    monkeypatch.setattr(hook, "lake_graph", lambda **_: Graph())
    context["outlet_events"] = defaultdict(SimpleNamespace)
    operator = MergeOperator(task_id="merge", dic="hashtag-count", outlets=[COUNTS])
    assert operator.run(context, hook)["changed"]
    assert merged == [hook.reduced_folder(run)]
    assert context["outlet_events"][COUNTS].extra == {"version": f"hashtag_counts/{run}"}
    lineage = operator.get_openlineage_facets_on_complete(None)
    assert [one.name for one in lineage.inputs] == ["tweets"]
    assert lineage.outputs[0].outputFacets["headwater_dependencies"].edges == 1
    assert pl.read_parquet(hook.reduced_folder(run) / "graph.parquet").height == 1
