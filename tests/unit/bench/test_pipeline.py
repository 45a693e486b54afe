"""`headwater bench pipeline` shows what its application tells, and fails where a result is not the true one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.bench.pipeline import COLUMNS, Row
from provenance_store.cli.bench import benches
from provenance_store.errors import JobError
from provenance_store.services import application

ROW = Row(
    turn=1, tweets=1000, cores=2, beside=True, with_broker=False, messages=9, bytes=2_000_000, edges_in=4000,
    edges_local=2500, edges_out=1100, verdict="complete", exact=True, seconds=2.0, seconds_after_end=3.5,
    send_seconds=1.0, peak=1 << 30, disk=1 << 31, load=0.5, by_others=0.25,
)  # fmt: skip


def tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **changes: object) -> None:
    """Let a small program stand in for the one that runs the reducer."""
    program = tmp_path / "program.py"
    program.write_text(f"print({json.dumps({'row': {**ROW.to_dict(), **changes}})!r})\n")
    start = subprocess.Popen

    def start_program(command: list[str], **options: object) -> object:
        assert command[1:] == ["-m", "spark_apps.bench.pipeline", "--repeat=1", "--tweets=1000"]
        return start([sys.executable, str(program)], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(application.subprocess, "Popen", start_program)


def test_a_row_for_each_reduction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path)
    done = CliRunner().invoke(benches, ["pipeline", "--tweets=1000", "--repeat=1", "--json"], catch_exceptions=False)
    (row,) = json.loads(done.stdout)
    assert row["edges_per_second"] == 2000.0
    assert len(ROW.cells()) == len(COLUMNS)
    assert ROW.cells()[2] == "2, beside the job"
    assert ROW.cells()[-1] == "25"


def test_a_result_that_is_not_true_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, exact=False)
    with pytest.raises(JobError, match="true dependencies"):
        CliRunner().invoke(benches, ["pipeline", "--tweets=1000", "--repeat=1"], catch_exceptions=False)
