"""What the capture benchmark tells, without running an engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.bench.capture import CASES, COLUMNS, Row, measure_capture
from provenance_store.cli import bench as cli
from provenance_store.errors import InputError, JobError, TransportError
from provenance_store.services import application

ROW = {
    "case": "hadoop",
    "load": 1.5,
    "records": 1000,
    "seconds_without": [10.0, 20.0, 10.0],
    "seconds_with": [12.0, 22.0, 14.0],
    "processor_without": [5.0, 5.0, 5.0],
    "processor_with": [6.0, 6.0, 7.0],
    "messages": 7,
    "bytes": 20_000,
    "memory_without": 100 << 20,
    "memory_with": 120 << 20,
}

WORK = """
import time
held = bytearray(b"1" * (60 << 20))
began = time.process_time()
while time.process_time() - began < 0.6:
    pass
"""


def tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *lines: object, status: int = 0) -> None:
    """Let a small program stand in for the one that runs the engines."""
    program = tmp_path / "program.py"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    program.write_text(
        f"import sys\nprint({chr(10).join(texts)!r})\nprint('last words', file=sys.stderr)\nsys.exit({status})\n"
    )
    start = subprocess.Popen

    def start_program(command: list[str], **options: object) -> object:
        assert command[1:3] == ["-m", "spark_apps.bench.capture"]
        return start([sys.executable, str(program)], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(application.subprocess, "Popen", start_program)


def measure() -> list[Row]:
    return list(measure_capture(rows=1000, tweets=1000, repeat=3, cases=["hadoop"], say=lambda _: None))


def test_ratios_are_of_neighbours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, "what a JVM prints", {"progress": "begun"}, {"row": ROW})
    [row] = measure()
    assert row.ratios == [1.2, 1.1, 1.4]
    assert row.memory_ratio == 1.2
    assert row.to_dict()["bytes_per_record"] == 20.0
    assert len(row.cells()) == len(COLUMNS)
    assert row.cells()[3] == "1.20 (1.10 to 1.40)"


def test_an_error_there_is_the_same_error_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, {"error": "no broker", "kind": "TransportError"}, status=1)
    with pytest.raises(TransportError, match="no broker"):
        measure()


def test_an_end_without_a_word_quotes_the_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, "nothing", status=3)
    with pytest.raises(JobError, match=r"(?s)status 3.*last words"):
        measure()


def test_a_failed_case_is_in_the_table_and_in_the_exit_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, {"row": ROW}, {"row": {"case": "rdd-narrow", "load": 0.1, "error": "it broke"}})
    done = CliRunner().invoke(cli.app, ["bench", "capture"])
    assert done.exit_code == 1
    assert "failed" in done.output
    assert "rdd-narrow: it broke" in done.output
    assert "1.20 (1.10 to 1.40)" in done.output


def test_json_is_for_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path, {"row": ROW})
    done = CliRunner().invoke(cli.app, ["bench", "capture", "--case", "hadoop", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["ratios"] == [1.2, 1.1, 1.4]


def test_an_unknown_case_is_named() -> None:
    done = CliRunner().invoke(cli.app, ["bench", "capture", "--case", "none"])
    assert isinstance(done.exception, InputError)
    assert "There is no case 'none'" in str(done.exception)


def test_the_library_and_the_application_know_the_same_cases() -> None:
    from spark_apps.bench.cases import CASES as RUN

    assert tuple(RUN) == CASES


def test_children_are_watched() -> None:
    from spark_apps.bench.usage import PeakMemory, processor_seconds

    before = processor_seconds()
    with PeakMemory() as memory:
        subprocess.run([sys.executable, "-c", WORK], check=True)
    assert memory.peak > 60 << 20
    assert processor_seconds() - before > 0.5


def test_what_children_do_is_not_done_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_apps.bench import usage

    second = os.sysconf("SC_CLK_TCK")
    # Of ten seconds something was done in five; our child did six tenths of one at least, and starting it took some.
    ticks = iter([(0, 0), (5 * second, 10 * second)])
    monkeypatch.setattr(usage, "_machine_ticks", lambda: next(ticks))
    with usage.ByOthers() as others:
        subprocess.run([sys.executable, "-c", WORK + "\ntime.sleep(1)"], check=True)
    assert 0.3 < others.share < 0.45
