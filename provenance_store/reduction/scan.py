"""Documents of the plain kind, read natively: a prefix table and relations of two texts each, and nothing else.

The scanner takes a document only where `model.document.read_document` would take it and read the same edges. Whatever
it is not sure of it leaves: escapes, bytes beyond ASCII, other elements and attributes, prefixes that are not declared
or come late, very many or very long ones, and keys that do not grow from one to the next, as two equal ones never do.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from provenance_store.model.document import RELATION_ENDS
from provenance_store.reduction.native import (
    Bytes,
    Codes,
    Flags,
    Numbers,
    Relations,
    Word,
    compiled,
    load_byte,
    load_word,
    part,
    store_word,
    trailing_zeros,
)

Names = npt.NDArray[np.uint64]

# More prefixes, or longer namespaces, would make the expanded ids many times as large as the document.
MAX_PREFIXES = 16
_MAX_NAMESPACE = 512
# `"":{"prov:entity":"a:","prov:activity":"a:"}`: no relation is shorter.
_SHORTEST_ROW = 40

_QUOTE, _COLON, _COMMA, _OPEN, _CLOSE, _SPACE = (ord(sign) for sign in '":,{} ')
_WHITE = tuple(ord(sign) for sign in " \t\n\r")
_DEFAULT = np.frombuffer(b"default:", np.uint64)[0]
_DEFAULT_SIZE = len("default:")
# How an id with a prefix begins: two words, two masks and the size; a longer prefix is left to the other reader.
_MAX_PATTERN = 16
_PATTERN = 40
_END = 24  # bytes of an end in the rows: namespace, start, end
_NO = -1  # instead of a place: not of the plain kind

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_DEFAULT_MASK = _ALL >> np.uint64(8)
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(_QUOTE) * _ONES
_BACKSLASHES = np.uint64(ord("\\")) * _ONES
_SPACES = np.uint64(_SPACE) * _ONES


def _as_words(names: list[str]) -> tuple[Names, Names, Numbers]:
    """Quoted names as three words each, with masks of what counts, and their lengths: compared in three steps."""
    quoted = [f'"{name}"'.encode() for name in names]
    words = np.frombuffer(b"".join(name.ljust(24, b"\0") for name in quoted), np.uint64).reshape(-1, 3)
    masks = np.frombuffer(b"".join((b"\xff" * len(name)).ljust(24, b"\0") for name in quoted), np.uint64).reshape(-1, 3)
    return words, masks, np.array([len(name) for name in quoted], np.int64)


# The elements in the order of RELATION_ENDS, `prefix` last; the ends two by two in the same order.
_ELEMENTS, _ELEMENT_MASKS, _ELEMENT_SIZES = _as_words([*RELATION_ENDS, "prefix"])
_ENDS, _END_MASKS, _END_SIZES = _as_words([end for ends in RELATION_ENDS.values() for end in ends])
_PREFIX = len(RELATION_ENDS)


class Scanned(NamedTuple):
    """The edges of the documents that were taken; an end is a namespace, and the span of what stands after the prefix.

    Spans are addresses in the buffer, which whoever reads them must hold on to. The number of a namespace is
    MAX_PREFIXES times its document's, plus its place there.
    """

    taken: Flags
    document: Codes
    relation: Relations
    ends: Numbers  # of each edge: namespace, start and end of what depends, then of what it depends on
    namespaces: Numbers  # of each: start and end, or zeros where there is none


@part
def _skip(at: int) -> int:
    """Where the next byte is that is not JSON's white space."""
    while load_byte(at) in _WHITE:
        at += 1
    return at


@part
def _past(at: int, sign: int) -> int:
    """Past the sign and the white space around it."""
    if at < 0:
        return _NO
    at = _skip(at)
    return _skip(at + 1) if load_byte(at) == sign else _NO


@part
def _marks(word: Word) -> Word:
    """The high bit of each byte that no plain text holds, or that ends it.

    The lowest mark is exact, and only those above it may be false.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    marks = ((quotes - _ONES) & ~quotes) | ((backslashes - _ONES) & ~backslashes) | ((word - _SPACES) & ~word)
    return (marks | word) & _HIGH


@part
def _text_end(at: int) -> int:
    """Where the text that begins at `at` has its closing quote; eight bytes at a time."""
    marks = _marks(load_word(at))
    while marks == np.uint64(0):
        at += 8
        marks = _marks(load_word(at))
    at += trailing_zeros(marks) >> 3
    return at if load_byte(at) == _QUOTE else _NO


@part
def _past_name(at: int, names: Names, masks: Names, sizes: Numbers, which: int) -> int:
    """Past the quoted name, the colon and the white space around it."""
    for k in range(3):
        if (load_word(at + 8 * k) ^ names[which, k]) & masks[which, k] != np.uint64(0):
            return _NO
    return _past(at + sizes[which], _COLON)


@part
def _same(start: int, end: int, other_start: int, other_end: int) -> bool:
    if end - start != other_end - other_start:
        return False
    while start < end and load_byte(start) == load_byte(other_start):
        start += 1
        other_start += 1
    return start == end


@part
def _grows(last_start: int, last_end: int, start: int, end: int) -> bool:
    """Whether a key is longer than the last, or as long and greater."""
    if end - start != last_end - last_start:
        return end - start > last_end - last_start
    for k in range(end - start):
        if load_byte(start + k) != load_byte(last_start + k):
            return bool(load_byte(start + k) > load_byte(last_start + k))
    return False


@part
def _note_prefix(start: int, end: int, pattern: int) -> bool:
    """Note what ids with this prefix begin with, colon and all: two words, their masks, and the size."""
    size = end - start + 1
    for at in range(start, end):
        if load_byte(at) == _COLON:
            size = 0  # never before the first colon of an id
    if size == _DEFAULT_SIZE and load_word(start) & _DEFAULT_MASK == _DEFAULT & _DEFAULT_MASK:
        size = 0  # binds names without a prefix, which are no ids
    if size > _MAX_PATTERN:
        return False
    store_word(pattern + 32, np.uint64(size))
    for k in range(2):
        counted = min(max(size - 8 * k, 0), 8)
        mask = _ALL >> np.uint64(64 - 8 * counted) if counted else np.uint64(0)
        word = load_word(start + 8 * k)
        # The quote that ends the prefix is where the id has its colon.
        if 8 * k < size <= 8 * k + 8:
            word ^= np.uint64(_QUOTE ^ _COLON) << np.uint64(8 * (size - 1 - 8 * k))
        store_word(pattern + 8 * k, word & mask)
        store_word(pattern + 16 + 8 * k, mask)
    return True


@part
def _read_prefixes(at: int, names: Numbers, namespaces: Numbers, first: int, patterns: int) -> tuple[int, int]:
    """Past the prefix table, and how many it holds; patterns of ids and the namespaces' spans are noted."""
    count = 0
    at = _past(at, _OPEN)
    if at >= 0 and load_byte(at) == _CLOSE:
        return at + 1, 0
    while at >= 0 and load_byte(at) == _QUOTE and count < MAX_PREFIXES:
        end = _text_end(at + 1)
        value = _past(end + 1, _COLON) if end >= 0 else _NO
        value_end = _text_end(value + 1) if value >= 0 and load_byte(value) == _QUOTE else _NO
        if value_end < 0 or value_end - value > _MAX_NAMESPACE:
            return _NO, 0
        for other in range(count):
            if _same(at + 1, end, names[other, 0], names[other, 1]):
                return _NO, 0
        if not _note_prefix(at + 1, end, patterns + _PATTERN * count):
            return _NO, 0
        names[count, 0], names[count, 1] = at + 1, end
        namespaces[first + count, 0], namespaces[first + count, 1] = value + 1, value_end
        count += 1
        at = _skip(value_end + 1)
        if load_byte(at) == _CLOSE:
            return at + 1, count
        at = _past(at, _COMMA)
    return _NO, 0


@part
def _read_id(at: int, patterns: int, count: int, first: int, end: int) -> int:
    """Past an id with a declared prefix; its namespace and span go into the three words at `end`."""
    if at < 0 or load_byte(at) != _QUOTE:
        return _NO
    start, low, high = at + 1, load_word(at + 1), load_word(at + 9)
    for which in range(count):
        pattern = patterns + _PATTERN * which
        differs = ((low & load_word(pattern + 16)) ^ load_word(pattern)) | (
            (high & load_word(pattern + 24)) ^ load_word(pattern + 8)
        )
        size = load_byte(pattern + 32)
        if differs == np.uint64(0) and size > 0:
            stop = _text_end(start + size)
            store_word(end, np.uint64(first + which))
            store_word(end + 8, np.uint64(start + size))
            store_word(end + 16, np.uint64(stop))
            return stop + 1 if stop >= 0 else _NO
    return _NO


@part
def _read_relation(at: int, relation: int, patterns: int, count: int, first: int, row: int) -> int:
    """Past `{"<one end>": "<id>", "<the other>": "<id>"}`, the ends in either order."""
    at = _past(at, _OPEN)
    if at < 0:
        return _NO
    which = 0
    value = _past_name(at, _ENDS, _END_MASKS, _END_SIZES, 2 * relation)
    if value < 0:
        which = 1
        value = _past_name(at, _ENDS, _END_MASKS, _END_SIZES, 2 * relation + 1)
    at = _past(_read_id(value, patterns, count, first, row + _END * which), _COMMA)
    if at < 0:
        return _NO
    which = 1 - which
    value = _past_name(at, _ENDS, _END_MASKS, _END_SIZES, 2 * relation + which)
    return _past(_read_id(value, patterns, count, first, row + _END * which), _CLOSE)


@part
def _read_relations(
    at: int, relation: int, patterns: int, count: int, first: int, ends: int, edge: int
) -> tuple[int, int]:
    """Past all relations of one kind, and the number of the edge that comes next."""
    at = _past(at, _OPEN)
    if at >= 0 and load_byte(at) == _CLOSE:
        return at + 1, edge
    last_start = last_end = at  # an empty key never grows, so it is left to the other reader
    while at >= 0 and load_byte(at) == _QUOTE:
        start, end = at + 1, _text_end(at + 1)
        if end < 0 or not _grows(last_start, last_end, start, end):
            return _NO, edge
        last_start, last_end = start, end
        value = _past(end + 1, _COLON)
        at = _read_relation(value, relation, patterns, count, first, ends + 2 * _END * edge)
        if at < 0:
            return _NO, edge
        edge += 1
        if load_byte(at) == _CLOSE:
            return at + 1, edge
        at = _past(at, _COMMA)
    return _NO, edge


@part
def _read_document(
    start: int, stop: int, first: int, namespaces: Numbers, relations: Relations, ends: Numbers, edge: int
) -> int:
    """The number of the edge after the document's last, or -1."""
    names, patterns = np.empty((MAX_PREFIXES, 2), np.int64), np.empty(MAX_PREFIXES * _PATTERN, np.uint8)
    count = met = 0
    at = _past(start, _OPEN)
    while at >= 0 and load_byte(at) == _QUOTE:
        element, value = 0, _NO
        while value < 0 and element <= _PREFIX:
            value = _past_name(at, _ELEMENTS, _ELEMENT_MASKS, _ELEMENT_SIZES, element)
            element += 1
        element -= 1
        if value < 0 or met & (1 << element):
            return _NO
        met |= 1 << element
        begin = edge
        if element == _PREFIX:
            at, count = _read_prefixes(value, names, namespaces, first, patterns.ctypes.data)
        else:
            at, edge = _read_relations(value, element, patterns.ctypes.data, count, first, ends.ctypes.data, edge)
        if at < 0:
            return _NO
        relations[begin:edge] = element
        at = _skip(at)
        if load_byte(at) == _CLOSE:
            return edge if _skip(at + 1) == stop else _NO
        at = _past(at, _COMMA)
    return _NO


@compiled
def _scan(
    starts: Numbers,
    stops: Numbers,
    taken: Flags,
    documents: Codes,
    relations: Relations,
    ends: Numbers,
    namespaces: Numbers,
) -> int:
    edge = 0
    for document in range(len(starts)):
        first = document * MAX_PREFIXES
        after = _read_document(starts[document], stops[document], first, namespaces, relations, ends, edge)
        taken[document] = after >= 0
        if after >= 0:
            documents[edge:after] = document
            edge = after
    return edge


def scan(buffer: Bytes, starts: Numbers, stops: Numbers) -> Scanned:
    """Read the documents that lie in a padded buffer."""
    most = len(buffer) // _SHORTEST_ROW + 1
    taken = np.zeros(len(starts), np.bool_)
    documents, relations, ends = np.empty(most, np.int32), np.empty(most, np.int8), np.empty((most, 6), np.int64)
    namespaces = np.zeros((len(starts) * MAX_PREFIXES, 2), np.int64)
    base = buffer.ctypes.data
    edges = _scan(starts + base, stops + base, taken, documents, relations, ends, namespaces)
    return Scanned(taken, documents[:edges], relations[:edges], ends[:edges], namespaces)
