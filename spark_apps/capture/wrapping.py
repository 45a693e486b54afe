"""How a pair and its item's id travel through Hadoop's shuffle: `<key>TAB<id>TAB<value>NEWLINE`.

Hadoop partitions and sorts by the bytes before the first tab, so by the user's key alone. Keys and values may hold any
text: the six bytes from BACKSPACE to CARRIAGE RETURN, among them tab and both line breaks, are written as BACKSPACE and
a digit. As these six are neighbours and the digits ascend, escaped keys sort exactly as the keys themselves would.

Of which items combine made another travels the same way, in lines of its own: `<key>TAB=<item>TAB<items>`. So it is
told by whoever reads what Hadoop committed, and the many short processes of combiners need no connection.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from provenance_store.errors import InputError

_FIRST, _LAST = 0x08, 0x0D
_SPECIAL = re.compile(b"[\x08-\x0d]")
_ESCAPED = re.compile(b"\x08([0-5])")
_ESCAPES = {bytes([code]): b"\x08%d" % (code - _FIRST) for code in range(_FIRST, _LAST + 1)}
_ORIGINALS = {b"%d" % (code - _FIRST): bytes([code]) for code in range(_FIRST, _LAST + 1)}


# A line of the shuffle, taken apart: the key, the item's id and the value, as they travel.
Line: TypeAlias = tuple[bytes, bytes, bytes]
# A line whose id begins so is no pair: it tells of which items combine made this one.
TELLING = b"="


def escape(text: str) -> bytes:
    """Text as bytes without tabs and line breaks."""
    try:
        # Lone surrogates are no UTF-8, but a user's function may make them and expects them back.
        raw = text.encode("utf-8", "surrogatepass")
    except AttributeError:
        raise InputError(
            f"{text!r} is no text: map, combine and reduce give pairs of str, as streaming does."
        ) from None
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], raw) if _SPECIAL.search(raw) else raw


def unescape(raw: bytes) -> str:
    """The text that was escaped."""
    if b"\x08" in raw:
        raw = _ESCAPED.sub(lambda found: _ORIGINALS[found[1]], raw)
    return raw.decode("utf-8", "surrogatepass")


def start_line(key: str, item: str) -> bytes:
    """A line of the shuffle as far as all pairs of an item share it."""
    return b"%b\t%b\t" % (escape(key), item.encode("ascii"))


def end_line(value: str) -> bytes:
    """The rest of the line."""
    return escape(value) + b"\n"


def wrap(key: str, item: str, value: str) -> bytes:
    """A line of the shuffle."""
    return start_line(key, item) + end_line(value)


def unwrap(lines: Iterable[bytes]) -> Iterator[Line]:
    """The lines of the shuffle, taken apart."""
    for line in lines:
        try:
            raw_key, item, value = line.split(b"\t", 2)
        except ValueError:
            raise InputError(f"{line[:80]!r} came through the shuffle and is no pair of this job.") from None
        yield raw_key, item, value.rstrip(b"\n")


def telling(raw_key: bytes, item: bytes, members: Iterable[bytes]) -> bytes:
    """A line that tells of which items combine made this item, all of this key."""
    return b"%b\t%b%b\t%b\n" % (raw_key, TELLING, item, b" ".join(members))


def read_telling(line: Line) -> tuple[str, list[str]]:
    """The item, and those it was made of."""
    return line[1].removeprefix(TELLING).decode("ascii"), line[2].decode("ascii").split(" ")


def output_line(key: str, value: str) -> bytes:
    """A line of the output, as Hadoop's text output writes it."""
    try:
        # What was not UTF-8 in the input came as surrogates, and goes out as the bytes that it was.
        line = b"%b\t%b\n" % (key.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
    except AttributeError:
        raise InputError(f"{(key, value)!r} is no pair of texts: give str, as streaming does.") from None
    except UnicodeEncodeError as error:
        raise InputError(f"An output holds a character that no UTF-8 file can hold: {error.reason}.") from None
    if line.find(b"\n", 0, -1) >= 0 or b"\r" in line:
        raise InputError("An output holds a line break, and a record of a text file is one line: escape it yourself.")
    return line
