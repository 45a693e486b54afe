"""Killed with -9 at any moment and begun again, a purge leaves the same lake and the same certificate.

By default one purge of each lake is killed at step after step until it may end. With `HEADWATER_TEST_KILLS=20` twenty
purges are killed once each, at random moments.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from pyspark.sql import SparkSession

from provenance_store.graph.queries import LakeGraph
from provenance_store.model.failpoints import VARIABLE
from provenance_store.purge.approval import approve
from provenance_store.purge.certificate import Certificate, check_chain, read_all
from provenance_store.purge.plan import StoredPlan
from provenance_store.settings import Settings
from tests.purging import OrdersLake, PurgedLake, TwitterLake

KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "0"))
# Nothing has changed yet at the first ones; then versions, the lake graph, and the certificate are half done.
TWITTER_STEPS = (
    "fingerprints kept:1", "files written:1", "version drafted:2", "all drafted:1", "version switched:2",
    "old version removed:1", "graphs replaced:1", "purge ended:1",
)  # fmt: skip
ORDERS_STEPS = ("files written:2", "version switched:1", "graphs replaced:1")
TWEETS = [["#rain #sun", "#fog", "#rain"], ["#sun #rain", "dry", "#fog #rain"]]
CATEGORIES = {"rain": "wet", "fog": "wet", "sun": "dry"}
SOLD = [(1, "paid", 30), (1, "paid", 10), (2, "paid", 20), (2, "cancelled", 50), (3, "paid", 40), (3, "paid", 5)]
COUNTRIES = {1: "AT", 2: "AT", 3: "BR"}

EDGES = (
    "MATCH (o:Record)-[e:WAS_DERIVED_FROM]->(i:Record), (r:Run {id: e.run}) "
    "WHERE e.run IN $runs AND e.revision = r.revision RETURN o.id AS output, i.id AS input"
)


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


def twitter_lake(settings: Settings, folder: Path, graph: LakeGraph) -> PurgedLake:
    lake = TwitterLake(settings, folder, graph)
    numbers = iter(range(100))
    told = {"time": "2026-01-02T03:04:05Z", "handle": "ann"}
    tweeted = [[msgspec.json.encode({"id": str(next(numbers)), **told, "text": text}) for text in f] for f in TWEETS]
    lake.make(tweeted, [msgspec.json.encode({"hashtag": tag, "category": of}) for tag, of in CATEGORIES.items()])
    return lake


def orders_lake(settings: Settings, folder: Path, graph: LakeGraph, spark: SparkSession) -> PurgedLake:
    lake = OrdersLake(settings, folder, graph)
    orders = pl.DataFrame(
        [(number, *order) for number, order in enumerate(SOLD)],
        schema={"order_id": pl.Int64, "customer_id": pl.Int64, "status": pl.String, "cents": pl.Int64},
        orient="row",
    )
    customers = pl.DataFrame({"customer_id": list(COUNTRIES), "country": list(COUNTRIES.values())})
    lake.make([orders[:3], orders[3:]], customers.with_columns(confirmed=pl.lit(value=True)), spark)
    return lake


@pytest.fixture
def make_lake(neo4j_service: Settings, lake_graph: LakeGraph, spark_session: SparkSession, tmp_path: Path):
    def make(kind: str) -> tuple[PurgedLake, StoredPlan]:
        """A lake with an approved plan for its second record."""
        if kind == "twitter":
            lake = twitter_lake(neo4j_service, tmp_path, lake_graph)
        else:
            lake = orders_lake(neo4j_service, tmp_path, lake_graph, spark_session)
        source = "tweets" if kind == "twitter" else "orders"
        plan = lake.plan([sorted(contents(lake)[source])[1]])
        approve(lake.settings, lake_graph, plan.id, by="officer")
        return lake, plan

    return make


def start(lake: PurgedLake, plan: StoredPlan, failpoint: str = "") -> "subprocess.Popen[str]":
    settings = lake.settings
    services = {f"HEADWATER_SERVICES__{name.upper()}": str(value) for name, value in settings.services}
    environment = {
        **os.environ,
        **services,
        "HEADWATER_HOME": str(settings.home),
        "HEADWATER_JVM": str(settings.jvm),
        "HEADWATER_LAKE": str(settings.lake),
        "HEADWATER_RECORDINGS": str(settings.recordings),
        VARIABLE: failpoint,
    }
    command = [sys.executable, "-m", "spark_apps.purge", plan.id]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def finish(lake: PurgedLake, plan: StoredPlan) -> Certificate:
    process = start(lake, plan)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert check_chain(lake.settings.lake).faults == []
    [certificate] = read_all(lake.settings.lake)
    assert json.loads(told.splitlines()[-1]) == {"certificate": certificate.number}
    return certificate


def contents(lake: PurgedLake) -> dict[str, dict[str, Any]]:
    """All records of all datasets, by id."""
    datasets = sorted(path.name for path in lake.settings.lake.iterdir() if path.is_dir() and path.name[0] not in "_.")
    read = lake.read if isinstance(lake, TwitterLake) else lake.rows
    return {name: read(name) for name in datasets if name != "suites"}


def left(lake: PurgedLake, certificate: Certificate) -> Any:
    """What a purge leaves, without what differs between two lakes alike: their number, hashes and times."""
    hidden = [path for path in lake.settings.lake.rglob("*") if ".purge-" in path.name]
    told = {name: getattr(certificate, name) for name in ("number", "approved_by", "despite", "done", "findings")}
    graph = lake.graph.cypher(EDGES, {"runs": sorted({lake.version(dataset).name for dataset in lake.runs})})
    tombs = lake.graph.cypher("MATCH (r:Record {purged: $plan}) RETURN r.id AS id", {"plan": certificate.plan})
    told |= {"graph": sorted(map(str, graph.rows)), "tombs": sorted(map(str, tombs.rows))}
    whole = msgspec.json.encode([contents(lake), msgspec.to_builtins(told), list(map(str, hidden))]).decode()
    return json.loads(re.sub(r"\b(v|count-|total-|report-)\d+\b", r"\1N", whole))


@pytest.mark.parametrize(("kind", "steps"), [("twitter", TWITTER_STEPS), ("orders", ORDERS_STEPS)])
def test_a_purge_killed_at_every_step_ends_the_same(make_lake, kind: str, steps: tuple[str, ...]) -> None:
    other, undisturbed = make_lake(kind)
    expected = left(other, finish(other, undisturbed))
    lake, plan = make_lake(kind)
    before = contents(lake)
    for moment in steps:
        process = start(lake, plan, moment)
        told, _ = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, (moment, told)
        if "written" in moment or "drafted" in moment or "kept" in moment:
            assert contents(lake) == before
    assert left(lake, finish(lake, plan)) == expected


if KILLS:

    @pytest.mark.parametrize("number", range(KILLS))
    def test_a_purge_killed_once_ends_the_same(make_lake, number: int) -> None:
        kind = ("twitter", "orders")[number % 2]
        other, undisturbed = make_lake(kind)
        began = time.monotonic()
        expected = left(other, finish(other, undisturbed))
        takes = time.monotonic() - began
        lake, plan = make_lake(kind)
        process = start(lake, plan)
        assert process.stdout is not None
        process.stdout.readline()  # from here on it is at work
        time.sleep(random.Random(number).uniform(0.0, takes * 0.8))
        process.kill()
        process.communicate(timeout=300)
        assert left(lake, finish(lake, plan)) == expected
