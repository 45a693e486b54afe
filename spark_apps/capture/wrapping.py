"""How a pair and its item's id travel through Hadoop's shuffle: `<key>TAB<id>TAB<value>NEWLINE`.

Hadoop partitions and sorts by the bytes before the first tab, so by the user's key alone. Keys and values may hold any
text: the six bytes from BACKSPACE to CARRIAGE RETURN, among them tab and both line breaks, are written as BACKSPACE and
a digit. As these six are neighbours and the digits ascend, escaped keys sort exactly as the keys themselves would.

Of which items combine made another travels the same way, in lines of its own: `<key>TAB=<item>TAB<items>`. So it is
told by whoever reads what Hadoop committed, and the many short processes of combiners need no connection.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from provenance_store.errors import InputError

_FIRST, _LAST = 0x08, 0x0D
_SPECIAL = re.compile(b"[\x08-\x0d]")
_ESCAPED = re.compile(b"\x08([0-5])")
_ESCAPES = {bytes([code]): b"\x08%d" % (code - _FIRST) for code in range(_FIRST, _LAST + 1)}
_ORIGINALS = {b"%d" % (code - _FIRST): bytes([code]) for code in range(_FIRST, _LAST + 1)}
_FIELDS = 3

# A line whose id begins so is no pair: it tells of which items combine made this one.
_TELLING = b"="


class Run(NamedTuple):
    """Neighbouring lines of one key, taken apart, as they travel: pairs, and what was told with them."""

    raw_key: bytes
    items: list[bytes]
    values: list[bytes]
    # The item that combine made, and those it was made of with spaces between.
    tellings: Sequence[tuple[bytes, bytes]] = ()


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


def unescape_all(raws: Sequence[bytes]) -> list[str]:
    """The texts that were escaped, of which there is at least one; as none holds a line feed, all go at once."""
    joined = b"\n".join(raws)
    if b"\x08" in joined:
        return [unescape(raw) for raw in raws]
    return joined.decode("utf-8", "surrogatepass").split("\n")


def wrap(raw_key: bytes, item: bytes, value: str) -> bytes:
    """A line of the shuffle."""
    return b"%b\t%b\t%b\n" % (raw_key, item, escape(value))


def unwrap(blocks: Iterable[bytes]) -> Iterator[Run]:
    """The lines of the shuffle in runs of one key; the blocks may be cut anywhere.

    A block is taken apart by a few operations on all of it, because most of a worker's time goes by the line.
    """
    unfinished: list[bytes] = []
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield from _take_apart(b"".join((*unfinished, block[:end])))
            unfinished = []
        unfinished.append(block[end:])
    if any(unfinished):
        raise _stray(b"".join(unfinished))


def _take_apart(lines: bytes) -> Iterator[Run]:
    # Keys, ids and values hold neither tabs nor line feeds: every line is three fields.
    fields = lines.replace(b"\n", b"\t").split(b"\t")
    fields.pop()
    if len(fields) != _FIELDS * lines.count(b"\n"):
        raise _stray(next(line for line in lines.split(b"\n") if line.count(b"\t") != _FIELDS - 1))
    items, values = fields[1::_FIELDS], fields[2::_FIELDS]
    may_tell = b"\t" + _TELLING in lines
    start = 0
    for raw_key, run in groupby(fields[::_FIELDS]):
        end = start + len(list(run))
        found = Run(raw_key, items[start:end], values[start:end])
        yield _separate(found) if may_tell else found
        start = end


def _separate(run: Run) -> Run:
    pairs = [(item, value) for item, value in zip(run.items, run.values, strict=True) if item[:1] != _TELLING]
    tellings = [(item[1:], value) for item, value in zip(run.items, run.values, strict=True) if item[:1] == _TELLING]
    return Run(run.raw_key, [item for item, _ in pairs], [value for _, value in pairs], tellings)


def _stray(line: bytes) -> InputError:
    return InputError(f"{line[:80]!r} came through the shuffle and is no pair of this job.")


def telling(raw_key: bytes, item: bytes, used: bytes) -> bytes:
    """A line that tells of which items, with spaces between, combine made this one; all are of this key."""
    return b"%b\t%b%b\t%b\n" % (raw_key, _TELLING, item, used)


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
