"""Selections: what is named is there, and nothing but ids is kept."""

import re
from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.lake.places import Places
from provenance_store.model.ids import hash_key, key_text
from provenance_store.model.keys import KeyRing
from provenance_store.purge.selection import open_selection, read_ids, select_ids, select_keys
from provenance_store.settings import Settings
from tests.handmade import put, tell

PEOPLE = """
[people]
format = "text"
columns = ["name", "town"]
separator = "\\t"
key = ["name"]
personal = ["name"]
policy = { do = "delete" }
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake")
    tell(settings.lake, PEOPLE)
    put(settings.lake, "people/v1", ["ann\tYork", "bob\tHull", "cyd\tYork"])
    put(settings.lake, "people/v2", ["bob\tLeeds", "dan\tHull"])
    return settings


def test_records_are_selected_by_ids(settings: Settings) -> None:
    ids = ["lake:people/v1/part-0.txt#9", "lake:people/v2/part-0.txt#0"]
    selection = select_ids(settings, [*ids, ids[0]], by="eve")
    assert (selection.by, selection.how, selection.datasets) == ("eve", "ids", {"people": 2})
    assert read_ids(settings.lake, selection.id).to_list() == ids
    again = select_ids(settings, reversed(ids), by="mallory")
    assert again == selection == open_selection(settings.lake, selection.id)


def test_records_are_selected_by_ids_that_hold_their_keys(settings: Settings) -> None:
    hashed = hash_key("bob", secret=KeyRing(settings).of_version("people", "v1"))
    selection = select_ids(settings, [f"lake:people/v1#{hashed}", f"lake:people/v2#{key_text('bob')}"], by="eve")
    assert selection.datasets == {"people": 2}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("lake:people/v1/part-0.txt#3", "is not in the lake"),  # within a line
        ("lake:people/v1/part-0.txt#27", "is not in the lake"),  # at the end
        ("lake:people/v1/part-9.txt#0", "is not in the lake"),
        ("lake:people/v9/part-0.txt#0", "is not in the lake"),
        ("lake:people/v1#zoe", "is not in the lake"),
        ("lake:people/v1", "is not in the lake"),
        ("lake:places/v1/part-0.txt#0", "no dataset 'places'"),
        ("bob", "is not a lake record"),
    ],
)
def test_an_id_of_no_record_is_refused_by_name(settings: Settings, record: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)) as error:
        select_ids(settings, ["lake:people/v1/part-0.txt#0", record], by="eve")
    assert "places" in str(error.value) or record in str(error.value)
    assert not (settings.lake / "_purges").exists()


def test_a_record_that_was_taken_out_is_refused(settings: Settings) -> None:
    version = put(settings.lake, "people/v3", ["cyd\tYork"])
    Places.unmoved(27).rewritten([0, 9, 18], [-1, -1, 0], end=9).write(version, version.files()[0])
    assert select_ids(settings, ["lake:people/v3/part-0.txt#18"], by="eve").datasets == {"people": 1}
    with pytest.raises(InputError, match=r"v3/part-0\.txt#0 is not in the lake"):
        select_ids(settings, ["lake:people/v3/part-0.txt#0"], by="eve")


def test_records_are_selected_by_keys_in_all_versions(settings: Settings) -> None:
    selection = select_keys(settings, "people", [("bob",), ("dan",)], by="eve")
    assert selection.how == "keys"
    assert read_ids(settings.lake, selection.id).to_list() == [
        "lake:people/v1/part-0.txt#9",
        "lake:people/v2/part-0.txt#0",
        "lake:people/v2/part-0.txt#10",
    ]


def test_a_key_that_nobody_has_is_told_by_its_place_alone(settings: Settings) -> None:
    with pytest.raises(InputError, match="key 2 of those") as error:
        select_keys(settings, "people", [("bob",), ("zoe",)], by="eve")
    assert "zoe" not in str(error.value)


def test_keys_that_do_not_fit_are_refused(settings: Settings) -> None:
    put(settings.lake, "lines/v1", ["a"])
    tell(settings.lake, '[lines]\nformat = "text"\npolicy = { do = "delete" }\n')
    for dataset, keys, reason in [
        ("people", [("bob", "York")], "Key 1 has 2 parts"),
        ("people", [], "No key is given"),
        ("lines", [("a",)], "tells no key"),
        ("places", [("a",)], "is not in"),
    ]:
        with pytest.raises(InputError, match=reason):
            select_keys(settings, dataset, keys, by="eve")


def test_nothing_personal_is_kept(settings: Settings) -> None:
    select_keys(settings, "people", [("bob",)], by="eve")
    kept = b"".join(path.read_bytes() for path in (settings.lake / "_purges").rglob("*") if path.is_file())
    assert b"eve" in kept
    assert b"bob" not in kept


def test_an_altered_selection_is_refused(settings: Settings) -> None:
    one = select_ids(settings, ["lake:people/v1/part-0.txt#0"], by="eve")
    other = select_ids(settings, ["lake:people/v1/part-0.txt#9"], by="eve")
    folders = {name: settings.lake / "_purges" / "selections" / name for name in (one.id, other.id)}
    (folders[one.id] / "records.parquet").write_bytes((folders[other.id] / "records.parquet").read_bytes())
    with pytest.raises(InputError, match="was altered"):
        read_ids(settings.lake, one.id)
    with pytest.raises(InputError, match="There is no selection s-0123456789abcdef"):
        read_ids(settings.lake, "s-0123456789abcdef")
    with pytest.raises(InputError, match="is not the id of a selection"):
        read_ids(settings.lake, "../plans")


def test_nobody_selects_without_a_name(settings: Settings) -> None:
    with pytest.raises(InputError, match="who you are"):
        select_ids(settings, ["lake:people/v1/part-0.txt#0"], by="  ")
