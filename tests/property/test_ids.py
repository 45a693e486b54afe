"""Record ids give back exactly what went in, and no two records share one."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import IdError
from provenance_store.model.ids import RecordId, dataset_of, hash_key

# A file name on Linux is any bytes but NUL and '/'; Python shows them through os.fsdecode.
segments = st.binary(min_size=1, max_size=12).map(lambda b: os.fsdecode(b.replace(b"\0", b"_").replace(b"/", b"_")))
file_segments = segments.filter(lambda part: part not in {".", ".."})
files = st.lists(file_segments, min_size=1, max_size=4).map("/".join)
keys = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3).map(tuple)
# Made to collide if encoding were sloppy.
tricky = st.sampled_from(["a", "a/b", "a#1", "a%2Fb", "hmac:" + "0" * 64, ",", "a,b", "", "%", "%25", "é", "#", ":"])
positions = st.integers(min_value=0, max_value=2**63)

record_ids = st.one_of(
    st.builds(RecordId, dataset=segments, version=segments, file=files, position=positions),
    st.builds(RecordId, dataset=segments, version=segments, key=keys | st.lists(tricky, min_size=1).map(tuple)),
    st.builds(
        lambda dataset, version, key: RecordId(dataset, version, hashed_key=hash_key(key, secret=b"secret")),
        dataset=segments,
        version=segments,
        key=st.text(st.characters(exclude_categories=["Cs"])),
    ),
)


@given(record_ids)
def test_an_id_gives_its_parts_back(record: RecordId) -> None:
    assert RecordId.parse(str(record)) == record
    assert dataset_of(str(record)) == record.dataset


@given(record_ids)
def test_an_id_is_printable_ascii_that_json_needs_not_escape(record: RecordId) -> None:
    text = str(record)
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & set('"\\ <>')


@given(record_ids, record_ids)
def test_different_records_have_different_ids(one: RecordId, other: RecordId) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.text(max_size=60) | record_ids.map(lambda r: str(r).replace("%", "", 1)))
def test_any_text_is_a_canonical_id_or_an_error_that_says_why(text: str) -> None:
    try:
        parsed = RecordId.parse(text)
    except IdError as error:
        assert str(error)  # noqa: PT017 - both outcomes are right, and both are checked
    else:
        assert str(parsed) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_hashed_key_depends_on_key_and_secret_and_shows_neither(key: str) -> None:
    hashed = hash_key(key, secret=b"one secret")
    assert hashed == hash_key(key, secret=b"one secret")
    assert hashed != hash_key(key, secret=b"another secret")
    assert hashed != hash_key(key + "x", secret=b"one secret")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tweets/v1/a#0", "begin with 'lake:'"),
        ("lake:tweets", "not a whole record id"),
        ("lake:tweets/v1/a#01", "without leading zeros"),
        ("lake:tweets/v1/a#-1", "not a position"),
        ("lake:tweets/v1/../a#1", "relative to the version's folder"),
        ("lake:tweets/v1/%61#1", "canonical form"),
        ("lake:/v1/a#1", "must both be given"),
    ],
)
def test_what_is_not_an_id_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(IdError, match=reason):
        RecordId.parse(text)


def test_of_a_foreign_id_only_the_dataset_is_read() -> None:
    assert dataset_of("lake:orders/whatever they like") == "orders"
    assert dataset_of("lake:or%2Fders#7") == "or/ders"
    with pytest.raises(IdError, match="names no dataset"):
        dataset_of("lake:#7")
