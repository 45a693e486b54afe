"""The workflows under Airflow's real scheduler, met as a user's client meets them: through its REST API."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from headwater_airflow.runs import run_of
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.layout import resolve
from provenance_store.lake.records import lines_of
from provenance_store.services import lifecycle
from provenance_store.services.airflow import Airflow
from provenance_store.services.beside import outcome_of
from provenance_store.services.kafka import Kafka
from provenance_store.settings import Settings, as_environment
from tests.airflow_client import wait
from tests.system.conftest import World
from tests.twitter import Workflow

# An approval that comes while the task is still being parked can be lost.
_SECONDS_TO_PARK = 5


@pytest.fixture(scope="module")
def tried(world: World, shown: Workflow) -> Workflow:
    """The demo's DAGs once more, which finds no broker at first, and is killed in the middle of its second try."""
    kafka = Kafka(world.settings)
    lifecycle.down(kafka, print)
    run = world.engineer.trigger("twitter_hashtags", count=200, seed=9)
    world.engineer.wait_for("twitter_hashtags", run, "count", "up_for_retry")
    lifecycle.up(kafka, print)
    told = world.engineer.log("twitter_hashtags", run, "count", 1)
    assert "TransportError" in told
    assert f"127.0.0.1:{world.settings.services.kafka_port}" in told
    wait(lambda: len(counting()) > 2, "the count to be in its middle", 480)
    for process in counting():
        process.kill()
    done = world.workflow(run)
    assert world.engineer.tasks("twitter_hashtags", run)["count"]["try_number"] == 3
    assert done.counts != shown.counts
    return done


def counting() -> list[psutil.Process]:
    """The process of the count, all that it started, and the task that waits for it."""
    for process in psutil.process_iter(["cmdline"]):
        if "spark_apps.dics.hashtag_count" in (process.info["cmdline"] or ()):
            return [process, *process.children(recursive=True), *process.parents()[:1]]
    return []


def check_numbers(workflow: Workflow) -> None:
    """Both DICs wrote what they should have."""
    assert workflow.written(workflow.counts) == workflow.expected_counts()
    assert workflow.written(workflow.totals) == workflow.expected_totals()


def check_answers(settings: Settings, workflow: Workflow) -> None:
    """Backward from category totals over both engines to tweets, exactly."""
    behind = workflow.behind_totals()
    with LakeGraph(settings) as graph:
        for total in random.Random(5).sample(sorted(behind), 3):
            answer = graph.backward([total])
            found: dict[str, set[str]] = {}
            for one in answer.records:
                found.setdefault(str(one.dataset), set()).add(one.id)
            assert found == behind[total]
            assert answer.verdict == "complete"
        counts = graph.cypher(
            "MATCH (a:Record)-[e:WAS_DERIVED_FROM {run: $run}]->(b:Record) "
            "RETURN count(*) AS edges, count(DISTINCT [a.id, b.id]) AS pairs",
            {"run": resolve(settings.lake, workflow.counts).name},
        )
    edges = sum(len(set(tags)) for tags in workflow.tags().values())
    assert list(map(list, counts.rows)) == [[edges, edges]]


def test_without_a_broker_and_killed_a_task_is_tried_again_and_all_is_right(
    world: World, shown: Workflow, tried: Workflow
) -> None:
    for workflow in (tried, shown):
        check_numbers(workflow)
    check_answers(world.settings, tried)


def test_a_purge_waits_for_an_officer_and_ends_with_a_certificate(world: World, tried: Workflow) -> None:
    tags = tried.tags()
    reaching = set.union(*(found["tweets"] for found in tried.behind_totals().values()))
    tweet = max(reaching, key=lambda record: (len(set(tags[record])), record))
    before = dict(lines_of(resolve(world.settings.lake, tried.tweets)))
    dag = "purge_sensitive_data"
    wrong = {"logical_date": None, "conf": {"records": ["someone@example.org"]}}
    assert world.engineer.ask("POST", f"/dags/{dag}/dagRuns", wrong).status_code == 400
    right = {"logical_date": None, "conf": {"records": [tweet]}}
    assert world.viewer.ask("POST", f"/dags/{dag}/dagRuns", right).status_code == 403

    run = world.engineer.trigger(dag, records=[tweet], reason="request 7")
    world.engineer.wait_for(dag, run, "approve", "awaiting_input")
    asked = f"/dags/{dag}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
    body = world.officer.get(asked)["body"]
    assert f"| {tried.tweets} | delete | 1 | 0 | 200 |" in body
    assert f"| {tried.totals} | recompute | 0 |" in body
    assert "request 7" in body
    assert dict(lines_of(resolve(world.settings.lake, tried.tweets))) == before
    time.sleep(_SECONDS_TO_PARK)
    answer = {"chosen_options": ["Approve"], "params_input": {"despite": ""}}
    assert world.viewer.ask("PATCH", asked, answer).status_code == 403
    assert world.engineer.ask("PATCH", asked, answer).status_code == 403
    given = world.officer.ask("PATCH", asked, answer)
    assert given.is_success, given.text

    world.engineer.succeed(dag, run)
    certificate = world.engineer.xcom(dag, run, "certificate")
    assert certificate["passed"]
    assert certificate["approved_by"] == "officer"
    assert dict(lines_of(resolve(world.settings.lake, tried.tweets))) == {
        record: line for record, line in before.items() if record != tweet
    }
    check_numbers(tried)
    conf = json.dumps(world.engineer.get(f"/dags/{dag}/dagRuns/{run}")["conf"])
    assert json.loads(before[tweet])["handle"] not in conf
    assert json.loads(before[tweet])["handle"] not in body


def test_a_dry_run_plans_and_changes_nothing(world: World, tried: Workflow) -> None:
    record = next(iter(tried.tags()))
    run = world.engineer.trigger("purge_sensitive_data", records=[record], dry_run=True)
    tasks = world.engineer.succeed("purge_sensitive_data", run)
    assert {name: one["state"] for name, one in tasks.items()} == {
        "plan": "success", "approve": "skipped", "apply": "skipped", "verify": "skipped", "certificate": "skipped",
    }  # fmt: skip
    assert record in tried.tags()


@pytest.mark.usefixtures("tried")
def test_the_lake_is_healthy_and_openlineage_knows_the_datasets(world: World) -> None:
    world.engineer.succeed("lake_health", world.engineer.trigger("lake_health"))
    ended: dict[str, set[tuple[str, str]]] = {}
    for line in world.events.read_text().splitlines():
        event = json.loads(line)
        if event["eventType"] == "COMPLETE":
            told = {("in", one["name"]) for one in event.get("inputs", ()) if one["namespace"] == "lake"}
            told |= {("out", one["name"]) for one in event.get("outputs", ()) if one["namespace"] == "lake"}
            ended.setdefault(event["job"]["name"], set()).update(told)
    feeds = {("in", "tweets"), ("out", "hashtag_counts")}
    assert ended["twitter_hashtags.ingest"] == {("out", "tweets")}
    assert ended["twitter_hashtags.count"] == feeds
    assert ended["twitter_hashtags.merge"] >= feeds
    assert ended["twitter_categories.total"] == {
        ("in", "hashtag_counts"), ("in", "categories"), ("out", "category_totals"),
    }  # fmt: skip


@pytest.mark.usefixtures("tried")
def test_where_the_job_has_failed_for_good_reduce_ends_and_says_so(world: World) -> None:
    """A person has to mend it: a dataset that the job reads is not there."""
    dag, here, away = "twitter_categories", world.settings.lake / "categories", world.settings.home / "away"
    here.rename(away)
    try:
        run = world.engineer.trigger(dag)
        world.engineer.wait_for(dag, run, "reduce", "failed")
    finally:
        away.rename(here)
    tasks = world.engineer.tasks(dag, run)
    assert {name: one["state"] for name, one in tasks.items()} == {
        "total": "failed", "reduce": "failed",
        "check_totals": "upstream_failed", "check_graph": "upstream_failed", "merge": "upstream_failed",
    }  # fmt: skip
    assert "task total has failed and is not tried again" in world.engineer.log(dag, run, "reduce", 1)
    word = world.settings.home / "runs" / run_of("category-totals", dag, run) / "reducer"
    wait(lambda: outcome_of(word) is not None, "the end of the reducer")


# What `airflow dags test` does, for one DAG after the other in one process: most of a start is imports.
TEST_DAGS = """
import json, sys
from airflow.cli.cli_parser import get_parser
for dag, conf in json.loads(sys.argv[1]).items():
    chosen = get_parser().parse_args(["dags", "test", dag, "--conf", json.dumps(conf)])
    chosen.func(chosen)
"""


@pytest.fixture
def paused(world: World) -> Iterator[dict[str, dict[str, int]]]:
    """Every DAG that waits for nobody, with what it is given, kept from the scheduler, which would take its tasks."""
    dags: dict[str, dict[str, int]] = {
        "twitter_hashtags": {"count": 100, "seed": 3},
        "twitter_categories": {},
        "orders_report": {"count": 100},
        "lake_health": {},
    }
    for dag in dags:
        assert world.engineer.ask("PATCH", f"/dags/{dag}", {"is_paused": True}).is_success
    yield dags
    for dag in dags:
        assert world.engineer.ask("PATCH", f"/dags/{dag}", {"is_paused": False}).is_success


@pytest.mark.usefixtures("tried")
def test_dags_are_tried_from_the_command_line(world: World, paused: dict[str, dict[str, int]]) -> None:
    """As their author would, in one process and without the scheduler."""
    airflow = Airflow(world.settings)
    done = subprocess.run(
        [sys.executable, "-c", TEST_DAGS, json.dumps(paused)],
        env={**os.environ, **as_environment(world.settings), "AIRFLOW_HOME": str(airflow.data)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    runs = {dag: world.engineer.runs(dag)[-1] for dag in paused}
    for dag, run in runs.items():
        assert (run["state"], run["triggering_user_name"]) == ("success", "dag_test")
        assert {one["state"] for one in world.engineer.tasks(dag, run["dag_run_id"]).values()} == {"success"}
    counts, totals = (
        world.engineer.xcom(dag, runs[dag]["dag_run_id"], task)
        for dag, task in (("twitter_hashtags", "count"), ("twitter_categories", "total"))
    )
    check_numbers(world.made(counts, totals))
