import os
import sys
import time
from pathlib import Path

import pytest

from provenance_store.errors import InputError, JobError
from provenance_store.services import beside
from provenance_store.services.beside import Outcome, ask_to_stop, outcome_of, start

LONG = 'import time; print(\'{"progress": "begun"}\', flush=True); time.sleep(600)'


def begin(folder: Path, program: str) -> None:
    start([sys.executable, "-c", program], "It", folder, os.environ)


def ended(folder: Path) -> Outcome:
    deadline = time.monotonic() + 60
    while (outcome := outcome_of(folder)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return outcome


def wait_until_begun(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not (folder / "log").exists() or b"begun" not in (folder / "log").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_leaves_word_of_its_results(tmp_path: Path) -> None:
    program = (
        'import sys; sys.stderr.write(\'logged\\n\'); print(\'{"progress": "said"}\'); print(\'{"finished": "a"}\')'
    )
    begin(tmp_path / "it", program)
    assert ended(tmp_path / "it").check() == [{"finished": "a"}]
    assert set((tmp_path / "it" / "log").read_text().splitlines()) == {"logged", "said"}


def test_what_it_raised_is_raised_where_it_is_asked(tmp_path: Path) -> None:
    begin(tmp_path / "it", 'print(\'{"error": "No such topic.", "kind": "InputError"}\'); raise SystemExit(1)')
    with pytest.raises(InputError, match="No such topic"):
        ended(tmp_path / "it").check()
    begin(tmp_path / "it", "raise SystemExit(7)")
    with pytest.raises(JobError, match="status 7"):
        ended(tmp_path / "it").check()


def test_one_that_goes_on_is_left_alone_and_ends_when_asked(tmp_path: Path) -> None:
    begin(tmp_path / "it", LONG)
    wait_until_begun(tmp_path / "it")
    begin(tmp_path / "it", 'print(\'{"finished": "another"}\')')
    assert outcome_of(tmp_path / "it") is None
    ask_to_stop(tmp_path / "it")
    with pytest.raises(JobError, match="asked to stop"):
        ended(tmp_path / "it").check()
    begin(tmp_path / "it", 'print(\'{"finished": "after"}\')')
    assert ended(tmp_path / "it").check() == [{"finished": "after"}]


def test_one_that_goes_without_a_word_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JobError, match="without a word"):
        ended(tmp_path / "never").check()
    (tmp_path / "beat").touch()
    assert outcome_of(tmp_path) is None
    monkeypatch.setattr(beside, "_SILENT_SECONDS", 0.0)
    with pytest.raises(JobError, match="without a word"):
        ended(tmp_path).check()
    ask_to_stop(tmp_path / "nowhere")


def test_a_log_is_kept_short_under_the_hands_of_who_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_MOST_LOGGED", 10)
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        for line in (b"a short\n", b"and a longer line\n", b"and one more\n", b"the last\n"):
            writer.write(line)
            beside._keep_short(log)
    assert log.read_bytes() == b"the last\n"
    assert (tmp_path / "log.1").read_bytes() == b"and one more\n"
