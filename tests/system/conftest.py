"""One lake with all its services for every test here: `headwater demo` makes it, through Airflow's real scheduler."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provenance_store.services import lifecycle
from provenance_store.services.airflow import Airflow
from provenance_store.services.registry import services
from provenance_store.settings import KafkaSettings, Settings, as_environment
from tests.airflow_client import Client, wait
from tests.services_fixtures import settings_for
from tests.twitter import Workflow

NAMES = ("kafka", "neo4j", "airflow")
Headwater = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class World:
    """All services, what the demo said, and who meets them."""

    settings: Settings
    events: Path
    headwater: Headwater
    said: str
    engineer: Client
    officer: Client
    viewer: Client

    def workflow(self, run: str) -> Workflow:
        """Wait for a run of the first DAG and for the one of the second that it starts; what both read and wrote."""
        self.engineer.succeed("twitter_hashtags", run)
        counts = self.engineer.xcom("twitter_hashtags", run, "count")

        def started() -> list[str]:
            found = []
            for one in self.engineer.runs("twitter_categories"):
                if one["start_date"] is None:  # Airflow 3.3 answers the question below with an error until it starts
                    continue
                events = self.engineer.get(f"/dags/twitter_categories/dagRuns/{one['dag_run_id']}/upstreamAssetEvents")[
                    "asset_events"
                ]
                found += [one["dag_run_id"] for event in events if event["extra"].get("version") in counts["outputs"]]
            return found

        wait(lambda: bool(started()), f"twitter_categories after {run}")
        (second,) = started()
        self.engineer.succeed("twitter_categories", second)
        totals = self.engineer.xcom("twitter_categories", second, "total")
        return self.made(counts, totals)

    def made(self, counts: dict[str, Any], totals: dict[str, Any]) -> Workflow:
        """What both DICs read and wrote, as their tasks returned it."""
        assert totals["inputs"][0] == counts["outputs"][0]
        return Workflow(
            lake=self.settings.lake,
            tweets=counts["inputs"][0],
            categories=totals["inputs"][1],
            counts=counts["outputs"][0],
            totals=totals["outputs"][0],
        )


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("demo")
    events = home / "openlineage.jsonl"
    settings = settings_for(home).model_copy(update={"kafka": KafkaSettings(timeout_seconds=15)})
    transport = json.dumps({"type": "file", "log_file_path": str(events), "append": True})
    environment = {**os.environ, **as_environment(settings), "AIRFLOW__OPENLINEAGE__TRANSPORT": transport}

    def headwater(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from provenance_store.cli.main import main; main()", *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, env=environment, cwd=home
        )

    try:
        done = headwater("demo", "--count", "300", "--seed", "4")
        assert done.returncode == 0, done.stdout + done.stderr
        airflow = Airflow(settings)
        with (
            Client(airflow, "engineer") as engineer,
            Client(airflow, "officer") as officer,
            Client(airflow, "viewer") as viewer,
        ):
            yield World(settings, events, headwater, done.stdout, engineer, officer, viewer)
    finally:
        for service in reversed(services(settings, NAMES)):
            lifecycle.down(service, print)


@pytest.fixture(scope="session")
def shown(world: World) -> Workflow:
    """What the demo made."""
    (run,) = (one["dag_run_id"] for one in world.engineer.runs("twitter_hashtags")[:1])
    return world.workflow(run)
