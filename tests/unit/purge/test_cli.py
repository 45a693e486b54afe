"""The command line of what happens before anything is changed, as far as it needs no services."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError
from provenance_store.settings import load_settings
from tests.handmade import put, tell
from tests.unit.purge.test_plan import store


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADWATER_LAKE", str(tmp_path / "lake"))
    monkeypatch.chdir(tmp_path)
    load_settings.cache_clear()
    root = tmp_path / "lake"
    columns = 'columns = ["first", "last"]\nseparator = "\\t"\nkey = ["first", "last"]'
    tell(root, f'[people]\nformat = "text"\n{columns}\npolicy = {{ do = "delete" }}\n')
    put(root, "people/v1", ["ann\tLee", "bob\tLee, Jr"])
    return root


def purge(*arguments: str, given: str = "") -> str:
    done = CliRunner().invoke(app, ["purge", *arguments], input=given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_records_are_selected_by_ids_and_keys_on_standard_input(lake: Path) -> None:
    by_id = purge("select", "--ids-file=-", "--by=eve", "--json", given="\n lake:people/v1/part-0.txt#8 \n\n")
    assert json.loads(by_id)["by"] == "eve"
    by_key = purge("select", "--dataset=people", "--keys-file=-", "--json", given='bob,"Lee, Jr"\n')
    assert json.loads(by_id)["id"] == json.loads(by_key)["id"]
    assert f"headwater purge plan {json.loads(by_id)['id']}" in purge(
        "select", "--ids-file=-", given="lake:people/v1/part-0.txt#8"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--dataset=people"], "Give one of"),
        (["--ids-file=-", "--keys-file=-"], "Give one of"),
        (["--keys-file=-"], "--dataset goes with"),
        (["--ids-file=-", "--dataset=people"], "--dataset goes with"),
        (["--ids-file=nowhere"], "nowhere cannot be read"),
        (["--ids-file=-"], "No record is named"),
    ],
)
def test_wrong_usage_is_a_sentence(lake: Path, arguments: list[str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        purge("select", *arguments)


def test_a_plan_is_shown(lake: Path) -> None:
    stored = store(lake, incomplete=["Run r1 is partial."], gone=["old/v0"])
    shown = purge("show", stored.id)
    for told in (stored.id, "tweets/v1", "counts/r1", "Incomplete: Run r1 is partial.", "old/v0", "plan.html"):
        assert told in shown
    told = json.loads(purge("show", stored.id, "--json"))
    assert (told["id"], told["digest"]) == (stored.id, stored.digest)
    assert [step["dataset"] for step in told["steps"]] == ["tweets", "counts"]
