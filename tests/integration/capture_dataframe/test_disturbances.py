"""Whatever a cluster does to a DataFrame job's tasks, it reduces to the graph of the undisturbed run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("disturbed")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.capture_dataframe.disturbed", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found = [json.loads(path.read_text()) for path in folder.glob("told-*.json")]
    return {one["scenario"]: one for one in found}


@pytest.mark.parametrize("scenario", ["tasks fail", "executor killed", "speculation"])
def test_a_disturbed_run_has_the_graph_of_the_undisturbed(told: dict[str, Any], scenario: str) -> None:
    calm, disturbed = told["undisturbed"], told[scenario]
    assert calm["verdict"] == disturbed["verdict"] == "complete"
    assert len(calm["graph"]) > 40_000
    assert disturbed["graph"] == calm["graph"]


@pytest.mark.parametrize(("scenario", "times"), [("tasks fail", 3), ("executor killed", 1), ("speculation", 1)])
def test_it_was_disturbed(told: dict[str, Any], scenario: str, times: int) -> None:
    assert told[scenario]["disturbed"] == times


def test_the_slow_attempt_was_not_waited_for(told: dict[str, Any]) -> None:
    assert told["speculation"]["seconds"] < 180
