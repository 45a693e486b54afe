"""Whatever a cluster does to a job's tasks, what was captured reduces to the graph of the undisturbed run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("disturbed.py")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("disturbed")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, check=False, timeout=500, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["scenario"]: one for one in found}


@pytest.mark.parametrize("scenario", ["tasks fail", "executor killed", "speculation", "cache lost"])
def test_a_disturbed_run_has_the_graph_of_the_undisturbed(told: dict[str, Any], scenario: str) -> None:
    calm, disturbed = told["undisturbed"], told[scenario]
    assert calm["verdict"] == disturbed["verdict"] == "complete"
    assert len(calm["graph"]) > 1000
    assert disturbed["graph"] == calm["graph"]


@pytest.mark.parametrize(
    ("scenario", "times"), [("tasks fail", 5), ("executor killed", 1), ("speculation", 1), ("cache lost", 1)]
)
def test_it_was_disturbed(told: dict[str, Any], scenario: str, times: int) -> None:
    assert told[scenario]["disturbed"] == times


def test_what_failed_attempts_had_sent_is_discarded(told: dict[str, Any]) -> None:
    assert told["undisturbed"]["discarded"] == 0
    assert told["tasks fail"]["discarded"] > 0


def test_the_slow_attempt_was_not_waited_for(told: dict[str, Any]) -> None:
    assert told["speculation"]["seconds"] < 180
