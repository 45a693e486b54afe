"""Ids outlive every rewrite: places against a list that remembers where each record was first written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.lake.layout import version_of
from provenance_store.lake.places import TAKEN_OUT, Places

# A record is its length: of a line with its line break, or 1 for a row.
lines = st.lists(st.integers(1, 6), max_size=12)
rows = st.lists(st.just(1), max_size=12)


def starts_of(lengths: list[int]) -> list[int]:
    return [sum(lengths[:number]) for number in range(len(lengths))]


@given(st.data(), st.sampled_from(["lines", "rows"]))
def test_ids_of_survivors_never_change_and_none_is_given_twice(data: st.DataObject, kind: str) -> None:
    lengths = data.draw(lines if kind == "lines" else rows)
    ids, gone = starts_of(lengths), set[int]()
    places = Places.unmoved(sum(lengths))
    for _ in range(data.draw(st.integers(1, 5))):
        fates = st.sampled_from(["keep", "keep", "change", "take out"])
        before, after, new_ids, new_lengths = starts_of(lengths), [], [], []
        for record, length in zip(ids, lengths, strict=True):
            fate = data.draw(fates)
            if fate == "take out":
                gone.add(record)
                after.append(TAKEN_OUT)
                continue
            after.append(sum(new_lengths))
            new_ids.append(record)
            new_lengths.append(data.draw(st.integers(1, 20)) if kind == "lines" and fate == "change" else length)
        more = data.draw(lines if kind == "lines" else rows)[:3]
        appended = [sum(new_lengths) + start for start in starts_of(more)]
        lengths = new_lengths + more
        places = places.rewritten(before, after, end=sum(lengths), appended=appended)
        given_now = places.original(appended).tolist()
        assert not set(given_now) & (gone | set(ids))
        assert len(set(given_now)) == len(more)
        ids = new_ids + given_now

        places = Places.from_bytes(places.to_bytes())
        assert places.end == sum(lengths)
        assert places.original(starts_of(lengths)).tolist() == ids
        assert [places.physical(record) for record in ids] == starts_of(lengths)
        assert {places.physical(record) for record in gone} <= {None}
        assert places.next_original > max([*ids, *gone], default=-1)
        assert len(places.starts) <= 2 * len(lengths) + 1


def test_what_keeps_its_distance_shares_a_segment() -> None:
    whole = Places.unmoved(1000)
    before = np.arange(0, 1000, 10)
    assert pairs(whole.rewritten(before, before, end=1000)) == [(0, 0), (1000, 1000)]
    without = np.where(before < 500, before, before - 10)
    without[50] = TAKEN_OUT
    once = whole.rewritten(before, without, end=990)
    assert pairs(once) == [(0, 0), (500, 510), (990, 1000)]
    longer = np.where(np.arange(99) > 3, np.arange(99) * 10 + 5, np.arange(99) * 10)
    twice = once.rewritten(np.arange(99) * 10, longer, end=995)
    assert pairs(twice) == [(0, 0), (31, -1), (45, 40), (505, 510), (995, 1000)]
    emptied = twice.rewritten(longer, np.full(99, TAKEN_OUT), end=0)
    assert pairs(emptied) == [(0, 1000)]
    assert pairs(emptied.rewritten([], [], end=7, appended=[0, 3])) == [(0, 1000), (7, 1007)]


def pairs(places: Places) -> list[tuple[int, int]]:
    return list(zip(places.starts.tolist(), places.originals.tolist(), strict=True))


def test_places_lie_beside_their_version(tmp_path: Path) -> None:
    version = version_of(tmp_path, "tweets", "v1")
    file = version.path / "day=1" / "part-0.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"b\n")
    assert Places.load(version, file) is None
    made = Places.unmoved(4).rewritten([0, 2], [TAKEN_OUT, 0], end=2)
    made.write(version, file)
    assert version.files() == [file]
    loaded = Places.load(version, file)
    assert loaded is not None
    assert pairs(loaded) == pairs(made) == [(0, 2), (2, 4)]
    places = version.path / "_places" / "day=1" / "part-0.jsonl.places"
    for torn in (b"", places.read_bytes()[:-1], bytes(32), places.read_bytes()[::-1]):
        places.write_bytes(torn)
        with pytest.raises(InputError, match=r"part-0\.jsonl\.places: This is not a places file"):
            Places.load(version, file)


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [([0, 2], [0], 2), ([0, 2], [2, 0], 4), ([1, 2], [0, 2], 4), ([0, 2], [0, 2], 2), ([0, 4], [0, 2], 4)],
)
def test_a_rewrite_that_cannot_be_is_refused(before: list[int], after: list[int], end: int) -> None:
    with pytest.raises(InputError, match=r"stood|positions"):
        Places.unmoved(4).rewritten(before, after, end=end)


def test_a_file_that_does_not_fit_its_places_is_noticed() -> None:
    places = Places.unmoved(4).rewritten([0, 2], [0, 9], end=11)
    assert pairs(places) == [(0, 0), (1, -1), (9, 2), (11, 4)]
    for stray in (-1, 1, 8, 11, 12):
        with pytest.raises(InputError, match="changed without its places"):
            places.original([0, stray])
