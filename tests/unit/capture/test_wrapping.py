"""Pairs survive the shuffle whatever they hold, and sort by the user's key alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from spark_apps.capture.wrapping import (
    escape,
    output_line,
    telling,
    unescape,
    unescape_all,
    unwrap,
    wrap,
)

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text("\x07\x08\t\n\x0b\x0c\r\x0e05a\\#\udc80")


@given(ANY_TEXT, ANY_TEXT)
def test_a_pair_survives(key: str, value: str) -> None:
    line = wrap(escape(key), b"0.31", value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    [(raw_key, items, raw_values, tellings)] = unwrap([line])
    assert (unescape(raw_key), items, unescape_all(raw_values)) == (key, [b"0.31"], [value])
    assert not tellings


@given(st.lists(st.tuples(ANY_TEXT, st.lists(ANY_TEXT, min_size=1)), max_size=6), st.lists(st.integers(0, 200)))
def test_wherever_the_stream_is_cut_the_pairs_are_the_same(
    groups: list[tuple[str, list[str]]], cuts: list[int]
) -> None:
    expected = [(key, value) for key, values in groups for value in values]
    stream = b"".join(wrap(escape(key), b"0.7", value) for key, value in expected)
    places = [0, *sorted({min(cut, len(stream)) for cut in cuts}), len(stream)]
    blocks = [stream[start:end] for start, end in pairwise(places)]
    found = [(unescape(raw_key), text) for raw_key, _, raws, _ in unwrap(blocks) for text in unescape_all(raws)]
    assert found == expected


@given(ANY_TEXT)
def test_hadoop_sees_the_key_alone_before_the_first_tab(key: str) -> None:
    assert wrap(escape(key), b"0.0", "a\tb").split(b"\t", 1)[0] == escape(key)


@given(ANY_TEXT, ANY_TEXT)
def test_escaped_keys_sort_as_the_keys_do(one: str, other: str) -> None:
    raw_one, raw_other = one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    assert (raw_one < raw_other) == (escape(one) < escape(other))
    assert (raw_one == raw_other) == (escape(one) == escape(other))


@given(st.binary())
def test_what_was_not_utf8_goes_out_as_it_came(raw: bytes) -> None:
    text = raw.replace(b"\n", b"").replace(b"\r", b"").decode("utf-8", "surrogateescape")
    [(_, _, [travelled], _)] = unwrap([wrap(b"k", b"0.0", text)])
    assert output_line("k", unescape(travelled)) == b"k\t" + text.encode("utf-8", "surrogateescape") + b"\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\ud800"])
def test_an_output_that_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="holds a"):
        output_line("key", text)


def test_what_is_no_text_is_refused_with_a_sentence() -> None:
    with pytest.raises(InputError, match="pairs of str"):
        wrap(b"key", b"0.0", 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="texts"):
        output_line("key", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("stray", [b"stray\n", b"k\t0.0\t1\nstray\n", b"k\t0.0\t1\t2\n", b"k\t0.0\t1\nk\t0.0\t1"])
def test_a_line_of_someone_else_is_refused(stray: bytes) -> None:
    with pytest.raises(InputError, match="no pair of this job"):
        list(unwrap([stray]))


def test_what_combine_made_of_which_items_survives_and_is_told_from_pairs() -> None:
    lines = telling(escape("a\tb"), b"cdigest", b"0.5 1.9"), wrap(escape("a\tb"), b"cdigest", "=")
    [(raw_key, items, values, tellings)] = unwrap([b"".join(lines)])
    assert unescape(raw_key) == "a\tb"
    assert (items, values) == ([b"cdigest"], [b"="])
    assert tellings == [(b"cdigest", b"0.5 1.9")]
