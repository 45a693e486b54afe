"""Verification finds what a purge left undone, and nothing where all is done; fingerprints and burial with it."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Catalogue, Dataset, Delete
from provenance_store.lake.layout import Version
from provenance_store.lake.rewriting import LineEdit
from provenance_store.model.keys import KeyRing
from provenance_store.purge import verify as verify_module
from provenance_store.purge.again import verify_again
from provenance_store.purge.burial import bury
from provenance_store.purge.certificate import issue
from provenance_store.purge.done import StepDone
from provenance_store.purge.fingerprints import FILE, fingerprint_records, read_fingerprints, recognise, scan
from provenance_store.purge.verify import verify
from tests.verifying import DONE, TWEETS, PurgedLake

GONE = "selected records are gone"
REACHED = "reached records are gone"
EQUAL = "nothing equal to them is found"
REDACTED = "fields are redacted"
COUNTED = "no other record came or went"
COMPUTED = "hashtag_counts/r is what its inputs give"
BURIED = "removed records are tombstones"
JSON = Dataset(format="jsonl", policy=Delete())
CSV = Dataset(format="csv", columns=("a", "b"), policy=Delete())
TEXT = Dataset(format="text", columns=("a", "b"), separator="\t", policy=Delete())
LATER = "p-fedcba9876543210"


@pytest.fixture
def lake(tmp_path: Path) -> PurgedLake:
    return PurgedLake(tmp_path)


@pytest.fixture
def purged(lake: PurgedLake) -> PurgedLake:
    lake.purge()
    assert bury(lake.settings, lake.graph, lake.stored) == 3
    return lake


def found(lake: PurgedLake, done=DONE) -> dict[str, bool | None]:
    findings = verify(lake.settings, lake.graph, lake.stored, done)
    for finding in findings:  # nothing that stands in a record is told
        assert not any(word in finding.sentence for word in ("h0", "x@x", "#a"))
    return {finding.name: finding.passed for finding in findings}


ALL_PASS = dict.fromkeys((GONE, REACHED, EQUAL, REDACTED, COUNTED, COMPUTED, BURIED), True)


def failing(*names: str) -> dict[str, bool | None]:
    return {**ALL_PASS, **dict.fromkeys(names, False)}


def test_all_is_done(purged):
    assert found(purged) == ALL_PASS
    told = {finding.name: finding.counts for finding in verify(purged.settings, purged.graph, purged.stored, DONE)}
    assert told == {
        GONE: {"records": 2, "standing": 0},
        REACHED: {"records": 0, "standing": 0},
        EQUAL: {"purged": 2, "records": 2, "versions": 1, "found": 0},
        REDACTED: {"records": 1, "gone": 0, "unlike": 0},
        COUNTED: {"versions": 3, "expected": 7, "records": 7},
        COMPUTED: {"records": 2, "unexpected": 0, "missing": 0, "deleted": 0},
        BURIED: {"removed": 3, "tombstones": 3, "bare": 3},
    }


def test_nothing_is_done(lake):
    fingerprint_records(lake.settings, lake.stored)
    told = found(lake)
    assert [name for name, passed in told.items() if passed is False] == [GONE, EQUAL, REDACTED]
    # Where no marker tells of the purge, nobody knows how many there should be.
    assert told[COUNTED] is None


def test_a_selected_record_stands_where_it_stood(lake):
    fingerprint_records(lake.settings, lake.stored)
    lake.edit(lake.tweets, {"part-0": LineEdit(removed=[0])})
    assert {name for name, passed in found(lake).items() if passed is False} >= {GONE, EQUAL, COUNTED}


def test_a_copy_of_a_selected_record_stands_elsewhere(purged):
    purged.edit(purged.tweets, {"part-1": LineEdit(appended=[TWEETS[0].encode()])}, LATER)
    told = found(purged, [*DONE, StepDone(dataset="tweets", version="v", deleted=2)])
    assert told[EQUAL] is False
    assert told[GONE] is True


@pytest.mark.parametrize("spelt", [TWEETS[2], '{ "text":"#c",  "handle":"h2", "language": null }'])
def test_it_comes_back_in_another_version(purged, spelt):
    again = purged.write("tweets", "w", {"f": [TWEETS[1], spelt]})
    assert found(purged) == failing(EQUAL)
    (one,) = recognise(purged.settings, purged.graph, again)
    assert one == (f"lake:tweets/w/f#{len(TWEETS[1]) + 1}", "lake:tweets/v/part-1#0", purged.stored.id)


def test_over_a_rotation_of_keys_it_is_still_known(purged):
    ring = KeyRing(purged.settings)
    ring.rotate()
    again = purged.write("tweets", "w", {"f": [TWEETS[0]]})
    assert found(purged)[EQUAL] is False
    assert len(list(recognise(purged.settings, purged.graph, again))) == 1
    fingerprint_records(purged.settings, purged.stored)  # which are kept already
    (old,) = read_fingerprints(purged.stored).collect()["secret"].unique()
    ring.destroy(old)
    assert found(purged)[EQUAL] is None
    assert list(recognise(purged.settings, purged.graph, again)) == []


def test_fingerprints_tell_nothing_and_are_kept_once(lake):
    fingerprint_records(lake.settings, lake.stored)
    content = (lake.stored.path / FILE).read_bytes()
    fingerprint_records(lake.settings, lake.stored)
    assert (lake.stored.path / FILE).read_bytes() == content
    kept = read_fingerprints(lake.stored).collect()
    assert kept["id"].to_list() == ["lake:tweets/v/part-0#0", "lake:tweets/v/part-1#0"]
    assert kept["key"].to_list() == ["", ""]
    assert kept["fingerprint"].str.contains("^[0-9a-f]{64}$").all()
    assert kept["fingerprint"].n_unique() == 2


@pytest.mark.parametrize(
    ("values", "passes"),
    [
        ({"email": "y@y", "country": "??"}, False),
        ({"email": None, "country": "DE"}, False),
        ({"email": None, "country": "??"}, True),
    ],
)
def test_a_field_is_left_as_it_was(lake, values, passes):
    fingerprint_records(lake.settings, lake.stored)
    lake.redact(values)
    assert found(lake)[REDACTED] is passes


@pytest.mark.parametrize(
    ("told", "value", "lines", "unlike"),
    [
        (JSON, None, ['{"a": 1}', '{"b": 2}', '{"a": null}'], 1),
        (JSON, "x", ['{"a": "x"}', '{"b": 2}', '{"a": "y"}'], 1),
        (JSON, "x", ['{"a": 1}', '{"a": 2}'], 2),
        (JSON, 5, ['{"a": 5}', '{"a": "x"}'], 1),
        (CSV, None, [",b", "a,b", '"",b', ""], 1),
        (CSV, True, ["true,b", "false,b"], 1),
        (TEXT, None, ["\tb", "a\tb"], 1),
        (TEXT, 7, ["7\tb", "8\tb", "\tb"], 2),
    ],
)
def test_fields_of_lines(tmp_path, told, value, lines, unlike):
    version = Version("d", "v", tmp_path)
    (tmp_path / "f").write_text("".join(f"{line}\n" for line in lines))
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    rows = pl.DataFrame({"file": "f", "position": starts})
    there = sum(1 for line in lines if line)
    assert verify_module._count_unlike(version, told, rows, {"a": value}) == (there, unlike)


def test_another_record_went(purged):
    purged.edit(purged.tweets, {"part-0": LineEdit(removed=[len(TWEETS[0]) + 1])}, LATER)
    told = found(purged)
    assert told[COMPUTED] is False  # `b` is counted with a tweet that is gone
    assert told[COUNTED] is None  # another purge is under way, or was, of which nobody knows


def test_a_later_purge_is_taken_into_account(purged):
    issue(purged.settings, purged.stored, purged.approval(), DONE, [], "then", "later")
    purged.edit(purged.tweets, {"part-0": LineEdit(removed=[len(TWEETS[0]) + 1])}, LATER)
    purged.edit(purged.counts, {"part-0": LineEdit(removed=[4])}, LATER)
    later = [
        StepDone(dataset="tweets", version="v", deleted=1),
        StepDone(dataset="hashtag_counts", version="r", vanished=1),
    ]
    other = PurgedLake(purged.settings.home / "other").stored
    other = type(other)(LATER, other.digest, other.path, other.plan)
    issue(purged.settings, other, purged.approval(), later, [], "then", "later")
    bury(purged.settings, purged.graph, purged.stored)
    assert found(purged) == ALL_PASS
    again = verify_again(purged.settings, purged.graph, "1")
    assert (again.passed, again.plan, again.certificate) == (True, purged.stored.id, 1)


def test_after_a_restore_tombstones_are_made_again(purged):
    issue(purged.settings, purged.stored, purged.approval(), DONE, [], "then", "later")
    stones = dict(purged.graph.stones)
    purged.graph.stones.clear()
    assert not verify_again(purged.settings, purged.graph, purged.stored.id).passed
    assert verify_again(purged.settings, purged.graph, purged.stored.id, buries=True).passed
    assert purged.graph.stones == stones


@pytest.mark.parametrize("edit", [LineEdit(changed={0: b"a\t7"}), LineEdit(removed=[0]), LineEdit(appended=[b"z\t1"])])
def test_a_count_is_wrong(purged, edit):
    purged.edit(purged.counts, {"part-0": edit}, LATER)
    assert found(purged)[COMPUTED] is False


def test_what_purges_deleted_may_be_missing(purged):
    purged.edit(purged.counts, {"part-0": LineEdit(removed=[0])}, LATER)
    done = [StepDone(dataset="hashtag_counts", version="r", recomputed=1, vanished=1, deleted=1)]
    assert found(purged, done)[COMPUTED] is True


def test_a_dic_without_a_check_is_told(purged, monkeypatch):
    monkeypatch.setattr(verify_module, "CHECKS", "headwater.no-checks")
    assert found(purged) == {**ALL_PASS, COMPUTED: None}


def test_a_check_of_another_distribution(purged, monkeypatch):
    declare(monkeypatch, expect_nothing)
    assert found(purged)[COMPUTED] is False


def test_a_check_that_fails_is_told(purged, monkeypatch):
    def fail(*_):
        raise ValueError("#a")

    declare(monkeypatch, fail)
    assert found(purged) == {**ALL_PASS, COMPUTED: None}


def declare(monkeypatch, check) -> None:
    """Let this be what a distribution declares as the check of the DIC."""

    def declared(*, group: str, name: str) -> list[SimpleNamespace]:
        assert (group, name) == ("headwater.checks", "hashtag-count")
        return [SimpleNamespace(load=lambda: check)]

    monkeypatch.setattr(verify_module, "entry_points", declared)


def expect_nothing(inputs, output) -> pl.DataFrame:
    assert ([one.reference for one in inputs], output.reference) == (["tweets/v"], "hashtag_counts/r")
    return pl.DataFrame(schema={"hashtag": pl.String, "count": pl.Int64})


def test_a_tombstone_is_missing_or_tells_more(purged):
    stone = purged.graph.stones.pop("lake:hashtag_counts/r/part-0#8")
    assert found(purged) == failing(BURIED)
    purged.graph.stones["lake:hashtag_counts/r/part-0#8"] = stone
    purged.graph.bare = False
    assert found(purged) == failing(BURIED)


def test_buried_are_those_that_stand_no_more(purged):
    stones = purged.graph.stones
    assert sorted(stones) == [
        "lake:hashtag_counts/r/part-0#8",
        "lake:tweets/v/part-0#0",
        "lake:tweets/v/part-1#0",
    ]
    assert {purge for purge, _ in stones.values()} == {purged.stored.id}
    marks = dict(read_fingerprints(purged.stored).select("id", "fingerprint").collect().iter_rows())
    assert stones["lake:tweets/v/part-0#0"][1].endswith(f":{marks['lake:tweets/v/part-0#0']}")
    assert stones["lake:hashtag_counts/r/part-0#8"][1] is None


def test_a_version_that_is_gone_cannot_be_compared(purged):
    for file in [*purged.tweets.files(), *purged.tweets.path.rglob("*.*")]:
        file.unlink(missing_ok=True)
    purged.tweets.path.rename(purged.root / "_away")
    told = found(purged)
    assert told == {**ALL_PASS, COMPUTED: None, COUNTED: None}


def test_what_was_not_applied_is_not_verified(lake):
    with pytest.raises(InputError, match="was not applied to its end"):
        verify_again(lake.settings, lake.graph, lake.stored.id)
    with pytest.raises(InputError, match="There is no certificate 7"):
        verify_again(lake.settings, lake.graph, "7")


def test_keys_of_rows_and_rows_without(tmp_path):
    """A record whose key is null is known by all that it holds."""
    lake = PurgedLake(tmp_path)
    text = (lake.root / "catalogue.toml").read_text()
    (lake.root / "catalogue.toml").write_text(
        text.replace('do = "redact", null = ["email"], replace = { country = "??" }', 'do = "delete"')
    )
    frame = pl.DataFrame({"customer_id": [7, None], "email": ["a", "b"], "country": ["AT", "AT"]})
    version = lake.write("customers", "w", {})
    frame.write_parquet(version.path / "f.parquet")
    lake.purge()
    told = Catalogue.load(lake.root).of("customers")
    ((_, positions, hashes),) = scan(version, told, b"secret")
    assert positions.tolist() == [0, 1]
    pl.DataFrame({"customer_id": [7, None], "email": ["other", "b"], "country": ["DE", "AT"]}).write_parquet(
        version.path / "f.parquet"
    )
    assert [marks for _, _, marks in scan(version, told, b"secret")] == [hashes]
    assert [marks for _, _, marks in scan(version, told, b"other")] != [hashes]
