import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.reduce import app
from provenance_store.errors import InputError
from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.transport.recording import RecordingSink


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "stream.jsonl"
    with RecordingSink(path) as sink:
        for run in ("r1", "r2"):
            value = write_document(run, [("wasDerivedFrom", f"lake:{run}", "lake:a")])
            sink.send(Message.of(Headers(run, "dic", "a", 0), value))
            sink.send(Message.of(Headers(run, "dic", "", 0, kind=MANIFEST), Manifest(attempts={"a": 1}).to_bytes()))
    return path


def test_a_recording_is_reduced_to_a_folder_a_run(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(app, [str(recording), "--out", str(out), "--json"], catch_exceptions=False)
    assert [account["run"] for account in json.loads(done.stdout)] == ["r1", "r2"]
    assert sorted(path.name for path in out.iterdir()) == ["r1", "r2"]


def test_one_run_goes_into_the_folder_and_a_table_is_shown(recording: Path, tmp_path: Path) -> None:
    arguments = [str(recording.parent), "--out", str(tmp_path / "out"), "--run", "r2"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    assert json.loads((tmp_path / "out" / "account.json").read_text())["run"] == "r2"
    assert "r2" in done.stdout
    assert "complete" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["t", "--watermark", "10m"], "give --follow too"),
        (["t.*", "--follow", "--watermark", "10m"], "start a reducer for each"),
        (["t,u", "--follow", "--watermark", "10m"], "start a reducer for each"),
        (["t", "--follow", "--watermark", "soon"], "'soon' is no period"),
        (["t", "--follow", "--watermark", "0s"], "no period"),
        (["t", "--follow", "--run", "r"], "leave them out"),
        (["t", "--follow", "--wait", "3"], "leave them out"),
    ],
)
def test_what_does_not_go_together_is_told(arguments: list[str], reason: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InputError)
    assert reason in str(done.exception)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_a_period_is_told_in_seconds_minutes_or_hours(
    text: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("provenance_store.cli.reduce.listen", lambda command, *_: started.append(command) or [])
    CliRunner().invoke(app, ["t", "--out", str(tmp_path), "--follow", "--watermark", text], catch_exceptions=False)
    assert f"--watermark={float(seconds)}" in started[0]


@pytest.mark.parametrize("what", ["run", "out", "empty"])
def test_bad_input_is_a_sentence(what: str, recording: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    arguments = {
        "run": [str(recording), "--out", str(tmp_path / "out"), "--run", "r3"],
        "out": [str(recording), "--out", str(recording)],
        "empty": [str(empty), "--out", str(tmp_path / "out")],
    }[what]
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "out").exists()
