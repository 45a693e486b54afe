"""A run of a stream query is executed once at a time."""

import json
from pathlib import Path

import pytest

from provenance_store.model.files import in_turn
from provenance_store.settings import load_settings
from provenance_store.streams.examples import find_example
from spark_apps.streams.__main__ import main


def test_a_run_that_someone_executes_already_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADWATER_LAKE", str(tmp_path / "lake"))
    load_settings.cache_clear()
    query = tmp_path / "query.json"
    query.write_bytes(find_example("item-monitor").query.to_json())
    try:
        with in_turn(tmp_path / "home" / "streams" / ".r-1.lock"):
            assert main([f"--query={query}", "--run=r-1", "--follow"]) == 1
    finally:
        load_settings.cache_clear()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["kind"], "is executed already" in told["error"]) == ("JobError", True)
