"""`headwater bench graph` shows what it measured, and fails where an answer is not the true one."""

import json

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from provenance_store.bench import graph
from provenance_store.bench.graph import Asking, Many, Measured, Streaming
from provenance_store.bench.graph_baselines import Merging
from provenance_store.bench.lake_workflow import LakeWorkflow
from provenance_store.cli.bench import benches
from provenance_store.errors import JobError

MEASURED = Measured(
    records=1000,
    edges=3000,
    merging=[
        Merging(way="headwater merge", outputs=300, edges=3000, seconds=1.0),
        Merging(way="one transaction an output", outputs=10, edges=100, seconds=1.0),
        Merging(way="one transaction an output, a statement an edge", outputs=10, edges=50, seconds=1.0),
    ],
    asking=[Asking(direction="backward", asked=5, most_records=9, p50=4.0, p95=9.0)],
    streaming=Streaming(records=900, edges=900, first_seconds=0.1, seconds=0.5, memory=1 << 20),
    many=Many(starts=50, bulk_seconds=2.0, single_seconds=1.0, wrong=0),
    wrong=0,
    load=0.5,
)


def test_what_was_measured_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "measure_graph", lambda **_: MEASURED)
    done = CliRunner().invoke(benches, ["graph", "--json"], catch_exceptions=False)
    told = json.loads(done.stdout)
    assert told["times_baseline"] == 30
    assert told["edges_per_second"]["headwater merge"] == 3000
    assert "30 times as fast" in CliRunner().invoke(benches, ["graph"], catch_exceptions=False).stdout


def test_a_wrong_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "measure_graph", lambda **_: replace(MEASURED, wrong=2))
    with pytest.raises(JobError, match="2 answers differ"):
        CliRunner().invoke(benches, ["graph"], catch_exceptions=False)


def test_the_workflow_has_three_edges_a_tweet_and_follows_itself() -> None:
    workflow = LakeWorkflow(2000)
    assert 2.7 < workflow.counts.height / 2000 <= 3.1
    assert workflow.counts["input"].n_unique() == 2000
    assert workflow.counts.is_unique().all()
    assert set(workflow.totals["input"]) == set(workflow.counts["output"])
