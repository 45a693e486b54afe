"""The questions of a debugging session on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.settings import load_settings
from tests.item_monitor import LINES, RUN, monitor_items


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return monitor_items(tmp_path_factory.mktemp("monitor"))


@pytest.fixture
def ask(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HEADWATER_HOME", str(home))
    monkeypatch.setenv("HEADWATER_LAKE", str(home / "lake"))
    load_settings.cache_clear()

    def run(*arguments: str, **more: str) -> str:
        done = CliRunner().invoke(app, ["streams", *arguments], **more)
        assert done.exit_code == 0, done.output
        return done.stdout

    yield run
    load_settings.cache_clear()


def abnormal(ask) -> str:
    found = json.loads(ask("results", RUN, "--dataset", "item-warnings", "--json"))
    return next(one["id"] for one in found if one["content"]["warning"] == "ABNORMAL")


def test_jobs_and_results(ask) -> None:
    assert RUN in ask("jobs")
    assert json.loads(ask("jobs", "--json"))[0]["query"] == "item-monitor"
    assert "-2147483639" in ask("results", RUN, "--dataset", "item-warnings")
    assert json.loads(ask("results", RUN, "--around", "0", "--json")) == []


def test_sources_with_their_contents_and_checkpoints(ask) -> None:
    told = json.loads(ask("sources", abnormal(ask), "--json"))
    assert sorted(one["content"]["line"] for one in told["sources"]) == sorted(LINES)
    shown = ask("sources", abnormal(ask))
    assert all(line in shown for line in LINES)


def test_a_listing_marks_what_contributed(ask) -> None:
    shown = ask("debug", abnormal(ask))
    assert "[5/6] visits (aggregate)" in shown
    assert '* 2020-08-26 00:00:10.000  {"item":1769192,"visits":-2147483639}\n' in shown
    assert '  2020-08-26 00:00:10.000  {"item":18,"visits":82}\n' in shown
    assert "It came back as it stands in the lake." in shown
    assert json.loads(ask("debug", abnormal(ask), "--json"))["same"]


def test_step_by_step_it_waits_for_enter(ask) -> None:
    one = abnormal(ask)
    assert "[3/6]" not in ask("debug", one, "--step", input="\n")
    assert "[6/6]" in ask("debug", one, "--step", input="\n" * 5)


def test_what_is_no_result_is_a_sentence(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from provenance_store.cli.main import main; main()", "streams", "debug", "lake:a/1#1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HEADWATER_HOME": str(home), "HEADWATER_LAKE": str(home / "lake")},
    )
    assert done.returncode == 1
    assert "Error:" in done.stderr
    assert "Traceback" not in done.stderr
