"""A person's mistake is a sentence on standard error and a non-zero exit, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from provenance_store.cli.main import main
from provenance_store.errors import HeadwaterError


def headwater(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from provenance_store.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "HEADWATER_HOME": str(cwd / "home"), "HEADWATER_LAKE": str(cwd / "lake"), **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reduce", "{cwd}/broken", "--out", "{cwd}/stream.jsonl"], "is a file: name a folder"),
        (["merge", "{cwd}"], "headwater reduce"),
        (["merge", "{cwd}/nowhere"], "account.json"),
        (["backward", "lake:tweets/v1/a#0"], "headwater up neo4j"),
        (["run", "no-such-dic"], "There is no DIC 'no-such-dic'"),
        (["run", "hashtag-count", "--run", "r1"], "There is no dataset 'tweets'"),
        (["run", "hashtag-count", "--run", "../etc"], "cannot be a run id"),
        (["up", "oracle"], "There is no service oracle"),
        (["fetch", "oracle"], "There is no JVM part oracle"),
        (["record", "topic", "--out", "{cwd}/x.jsonl"], "does not answer"),
        (["replay", "{cwd}/missing.jsonl", "--topic", "t"], "There is no recording"),
        (["generate", "tweets", "--count", "1", "--seed", "1", "--version", "a/b"], "cannot name a version"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "stream.jsonl").write_text("{}\n")
    done = headwater(
        *(argument.format(cwd=tmp_path) for argument in arguments),
        cwd=tmp_path,
        HEADWATER_SERVICES__KAFKA_PORT="9",
        HEADWATER_KAFKA__TIMEOUT_SECONDS="2",
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_a_wrong_setting_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = headwater("status", cwd=tmp_path, HEADWATER_KAFKA__PARTITIONS="many")
    assert done.returncode == 1
    assert "kafka.partitions" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_exits_with_2(tmp_path: Path) -> None:
    assert headwater("reduce", cwd=tmp_path).returncode == 2
    assert headwater("no-such-command", cwd=tmp_path).returncode == 2


def test_an_error_that_is_not_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("a fault in the program")

    monkeypatch.setattr("provenance_store.cli.main.app", broken)
    with pytest.raises(RuntimeError, match="a fault in the program"):
        main()


def test_brackets_in_a_message_are_not_taken_for_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise HeadwaterError("record lake:a/v/f[bold]#1 is unknown")

    monkeypatch.setattr("provenance_store.cli.main.app", fails)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert "lake:a/v/f[bold]#1" in capsys.readouterr().err
