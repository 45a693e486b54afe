"""Airflow as a library: it makes its files in a folder of its own, which has to be named before it is imported."""

import os
import tempfile

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-"))
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.hooks.headwater import HeadwaterHook
from provenance_store.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", lake=tmp_path / "lake")


@pytest.fixture
def hook(settings: Settings) -> HeadwaterHook:
    made = HeadwaterHook()
    made.__dict__["settings"] = settings
    return made


@pytest.fixture
def context() -> dict[str, Any]:
    run = SimpleNamespace(dag_id="a_dag", run_id="manual__2026-11-18T01:02:03+00:00", triggering_user_name="engineer")
    return {"dag_run": run, "triggering_asset_events": {}, "outlet_events": {}}
