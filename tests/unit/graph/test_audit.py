import itertools
import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.audit import app
from provenance_store.errors import AuditError, UnknownRecordError
from provenance_store.graph import audit as audit_module
from provenance_store.graph.audit import Audit
from provenance_store.settings import AuditSettings, Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def ask(audit: Audit, number: int = 1, kind: str = "backward") -> int:
    return audit.keep(kind, {"start": [f"lake:a/1#{number}"]}, lambda: number, lambda found: {"records": found})


def log_of(home: Path) -> Path:
    (file,) = (home / "audit").glob("*.jsonl")
    return file


def test_what_is_kept_of_a_question(home: Path) -> None:
    audit = Audit(Settings(home=home), who="alice")
    before = datetime.now(UTC)
    assert ask(audit, 7) == 7

    def fails() -> int:
        raise UnknownRecordError("never seen")

    with pytest.raises(UnknownRecordError):
        audit.keep("forward", {"start": ["lake:a/1#x"]}, fails, lambda found: {"records": found})
    first, second = audit.entries()
    assert (first.who, first.kind, first.asked) == ("alice", "backward", {"start": ["lake:a/1#7"]})
    assert first.ended == {"records": 7}
    assert before <= first.at <= second.at <= datetime.now(UTC)
    assert first.seconds >= 0
    assert second.ended == {"error": "UnknownRecordError"}
    assert first.previous is None
    assert json.loads(log_of(home).read_text().splitlines()[0])["hash"] == second.previous


def test_only_its_owner_reads_it(home: Path) -> None:
    ask(Audit(Settings(home=home)))
    assert stat.S_IMODE((home / "audit").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (home / "audit").iterdir()} == {0o600}


def test_who_asks(home: Path) -> None:
    ask(Audit(Settings(home=home)))
    ask(Audit(Settings(home=home, audit=AuditSettings(who="airflow"))))
    ask(Audit(Settings(home=home, audit=AuditSettings(who="airflow")), who="bob"))
    audit = Audit(Settings(home=home))
    user = next(audit.entries()).user
    assert [(entry.who, entry.user) for entry in audit.entries()] == [(user, user), ("airflow", user), ("bob", user)]
    assert len(list(audit.entries(who="bob"))) == 1
    assert len(list(audit.entries(who=user))) == 3
    assert not list(audit.entries(who="carol"))
    assert not list(audit.entries(since=datetime.now(UTC) + timedelta(days=1)))


def test_text_that_utf_8_cannot_hold_is_kept(home: Path) -> None:
    audit = Audit(Settings(home=home))
    query = 'x\udc80 ,"hash":"' + "0" * 64 + '"}\n'
    audit.keep("cypher", {"query": query}, lambda: 0, lambda _: {})
    ask(audit)
    assert next(audit.entries()).asked == {"query": query}
    assert not audit.check().faults


def test_it_can_be_turned_off(home: Path) -> None:
    assert ask(Audit(Settings(home=home, audit=AuditSettings(enabled=False))), 3) == 3
    assert not (home / "audit").exists()


def test_what_cannot_be_kept_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit(Settings(home=home))
    ask(audit)
    before = log_of(home).read_bytes()
    write = os.write
    monkeypatch.setattr(audit_module.os, "write", lambda descriptor, line: write(descriptor, line[:40]))
    with pytest.raises(AuditError, match=r"Refused.*No space left.*HEADWATER_AUDIT__ENABLED"):
        ask(audit)
    monkeypatch.undo()
    assert log_of(home).read_bytes() == before
    ask(audit)
    assert not audit.check().faults

    home.with_name("other").mkdir()
    (home.with_name("other") / "audit").write_text("in the way")
    with pytest.raises(AuditError, match="cannot be written"):
        ask(Audit(Settings(home=home.with_name("other"))))


def test_every_alteration_shows(home: Path) -> None:
    audit = Audit(Settings(home=home))
    for number in range(4):
        ask(audit, number)
    assert audit.check().entries == 4
    assert not audit.check().faults
    file = log_of(home)
    lines = file.read_bytes().splitlines(keepends=True)
    changed = [
        [lines[0], *lines[2:]],
        [lines[0], lines[2], lines[1], lines[3]],
        [*lines[:3], lines[2], lines[3]],
        *([*lines[:at], lines[at].replace(b"lake:a", b"lake:b"), *lines[at + 1 :]] for at in range(4)),
        *([*lines[:at], lines[at][:-30], *lines[at + 1 :]] for at in range(4)),
    ]
    for version in changed:
        file.write_bytes(b"".join(version))
        assert audit.check().faults
    # One that hashes its own line anew is told by the next.
    entry = audit_module._read(lines[1])
    file.write_bytes(
        b"".join([lines[0], audit_module._line(audit_module.msgspec.structs.replace(entry, who="x")), *lines[2:]])
    )
    assert len(audit.check().faults) == 1


def test_the_days_are_one_chain(home: Path) -> None:
    audit = Audit(Settings(home=home))
    for number in range(2):
        ask(audit, number)
    log_of(home).rename(home / "audit" / "2026-01-01.jsonl")
    ask(audit)
    assert len(list((home / "audit").glob("*.jsonl"))) == 2
    whole = audit.check()
    assert (whole.entries, whole.faults, whole.begins_after) == (3, [], None)
    older = home / "audit" / "2026-01-01.jsonl"
    lines = older.read_bytes().splitlines(keepends=True)
    older.write_bytes(lines[0])
    assert audit.check().faults
    # Days that were put away are no fault, but it is told.
    older.unlink()
    assert audit.check().faults == []
    assert audit.check().begins_after == json.loads(lines[1])["hash"]


def test_a_clock_that_is_set_back_breaks_nothing(home: Path) -> None:
    audit = Audit(Settings(home=home))
    ask(audit)
    log_of(home).rename(home / "audit" / "9999-01-01.jsonl")
    ask(audit)
    assert audit.check().entries == 2
    assert not audit.check().faults


def test_behind_a_line_that_was_cut_off_the_log_goes_on(home: Path) -> None:
    audit = Audit(Settings(home=home))
    ask(audit)
    with log_of(home).open("ab") as file:
        file.write(b'{"at":"2026')
    ask(audit)
    ask(audit)
    checked = audit.check()
    assert checked.entries == 3
    assert [fault.partition(", ")[2] for fault in checked.faults] == [
        "line 2: altered, or cut off while it was written"
    ]
    with pytest.raises(AuditError, match="Line 2 of"):
        list(audit.entries())


def test_processes_beside_each_other_make_one_chain(home: Path) -> None:
    program = """
import sys
from pathlib import Path
from provenance_store.graph.audit import Audit
from provenance_store.settings import Settings
audit = Audit(Settings(home=Path(sys.argv[1])), who=sys.argv[2])
for number in range(100):
    # Some lines are longer than a block.
    start = ["lake:a/1#1"] * (1 if number % 10 else 1000)
    audit.keep("backward", {"start": start, "n": number}, lambda: 0, lambda _: {})
"""
    command = [sys.executable, "-c", program, str(home)]
    processes = [subprocess.Popen([*command, f"p{number}"]) for number in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    audit = Audit(Settings(home=home))
    checked = audit.check()
    assert (checked.entries, checked.faults) == (400, [])
    asked = sorted((entry.who, entry.asked["n"]) for entry in audit.entries())
    assert asked == list(itertools.product([f"p{number}" for number in range(4)], range(100)))


def test_the_command_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_HOME", str(home))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    assert "0 entries" in run("--verify")
    audit = Audit(Settings(home=home), who="alice")
    ask(audit, 5)
    assert "lake:a/1#5" in run()
    assert [json.loads(line)["who"] for line in run("--json", "--who", "alice").splitlines()] == ["alice"]
    assert run("--json", "--since", "9999-01-01") == ""
    assert "1 entries, none altered" in run("--verify")
    assert json.loads(run("--verify", "--json"))["faults"] == []
    file = log_of(home)
    file.write_bytes(file.read_bytes().replace(b"alice", b"carol"))
    with pytest.raises(AuditError, match="line 1: altered"):
        run("--verify")
