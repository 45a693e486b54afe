"""Pairs survive the shuffle whatever they hold, and sort by the user's key alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from spark_apps.capture.wrapping import TELLING, escape, output_line, read_telling, telling, unescape, unwrap, wrap

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text("\x07\x08\t\n\x0b\x0c\r\x0e05a\\#\udc80")


@given(ANY_TEXT, ANY_TEXT)
def test_a_pair_survives(key: str, value: str) -> None:
    line = wrap(key, "run:m0-1f.0", value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    [(raw_key, item, raw_value)] = unwrap([line])
    assert (unescape(raw_key), item, unescape(raw_value)) == (key, b"run:m0-1f.0", value)


@given(ANY_TEXT)
def test_hadoop_sees_the_key_alone_before_the_first_tab(key: str) -> None:
    assert wrap(key, "run:m0-0.0", "a\tb").split(b"\t", 1)[0] == escape(key)


@given(ANY_TEXT, ANY_TEXT)
def test_escaped_keys_sort_as_the_keys_do(one: str, other: str) -> None:
    raw_one, raw_other = one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    assert (raw_one < raw_other) == (escape(one) < escape(other))
    assert (raw_one == raw_other) == (escape(one) == escape(other))


@given(st.binary())
def test_what_was_not_utf8_goes_out_as_it_came(raw: bytes) -> None:
    text = raw.replace(b"\n", b"").replace(b"\r", b"").decode("utf-8", "surrogateescape")
    [(_, _, travelled)] = unwrap([wrap("k", "run:m0-0.0", text)])
    assert output_line("k", unescape(travelled)) == b"k\t" + text.encode("utf-8", "surrogateescape") + b"\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\ud800"])
def test_an_output_that_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="holds a"):
        output_line("key", text)


def test_what_is_no_text_is_refused_with_a_sentence() -> None:
    with pytest.raises(InputError, match="pairs of str"):
        wrap("key", "run:m0-0.0", 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="texts"):
        output_line("key", 1)  # type: ignore[arg-type]


def test_a_line_of_someone_else_is_refused() -> None:
    with pytest.raises(InputError, match="no pair of this job"):
        list(unwrap([b"stray\n"]))


def test_what_combine_made_of_which_items_survives_and_is_told_from_pairs() -> None:
    line = telling(escape("a\tb"), b"run:cm0-0.5", [b"run:m0-0.5", b"run:m1-0.9"])
    [told] = unwrap([line])
    assert told[1].startswith(TELLING)
    assert unescape(told[0]) == "a\tb"
    assert read_telling(told) == ("run:cm0-0.5", ["run:m0-0.5", "run:m1-0.9"])
