"""Ids to numbers: each expanded id once in a batch, known by a hash of 128 bits.

The hash is SipHash-1-3 with 128 bits and a fixed key: the same in every process and after every restart. Its mixing is
well studied, so ids that differ in a digit do not meet more often than chance has it, which for a billion ids is once
in 10^20 lakes. The lowest bit is not of the hash: it tells whether the id is in the lake's namespace, so that edges
between hashes tell what is kept without a look at the names.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from provenance_store.model.ids import LAKE_NAMESPACE
from provenance_store.reduction.native import (
    PADDING,
    Bytes,
    Codes,
    Flags,
    Numbers,
    Word,
    compiled,
    load_word,
    store_word,
)

_KEYS = (np.uint64(0x0706050403020100), np.uint64(0x0F0E0D0C0B0A0908))
_KEY_0, _KEY_1 = _KEYS
# SipHash's own: the words of "somepseudorandomlygeneratedbytes", and what marks the 128-bit form.
_INIT_0, _INIT_1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_INIT_2, _INIT_3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_ROUNDS, _LAST_ROUNDS = 1, 3
_WIDE, _SECOND = np.uint64(0xEE), np.uint64(0xDD)
_ALL, _ONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1)
# The namespace has nine bytes: two words that overlap.
_LAKE_SIZE = len(LAKE_NAMESPACE)
_LAKE_WORD, _LAKE_LAST_WORD = np.frombuffer(LAKE_NAMESPACE[:8].encode() + LAKE_NAMESPACE[-8:].encode(), np.uint64)


class Ids(NamedTuple):
    """The ids of a batch: the halves of their hashes, and their expanded texts, whose addresses are in `buffer`."""

    hi: Numbers
    lo: Numbers
    buffer: Bytes
    starts: Numbers
    stops: Numbers

    @property
    def lake(self) -> Flags:
        """Which are in the lake's namespace."""
        return in_lake(self.lo)


def in_lake(lo: Numbers) -> Flags:
    """Whether each id is in the lake's namespace, from the lower half of its hash."""
    return (lo & 1).astype(np.bool_)


@compiled
def _round(a: Word, b: Word, c: Word, d: Word) -> tuple[Word, Word, Word, Word]:
    a += b
    c += d
    b = ((b << np.uint64(13)) | (b >> np.uint64(51))) ^ a
    d = ((d << np.uint64(16)) | (d >> np.uint64(48))) ^ c
    a = (a << np.uint64(32)) | (a >> np.uint64(32))
    c += b
    a += d
    b = ((b << np.uint64(17)) | (b >> np.uint64(47))) ^ c
    d = ((d << np.uint64(21)) | (d >> np.uint64(43))) ^ a
    c = (c << np.uint64(32)) | (c >> np.uint64(32))
    return a, b, c, d


@compiled
def siphash(start: int, stop: int, rounds: int, last_rounds: int) -> tuple[Word, Word]:
    """SipHash of the bytes between two addresses, as two words; seven bytes beyond them are read and do not count."""
    a, b, c, d = _KEY_0 ^ _INIT_0, _KEY_1 ^ _INIT_1 ^ _WIDE, _KEY_0 ^ _INIT_2, _KEY_1 ^ _INIT_3
    at = start
    while at + 8 <= stop:
        word = load_word(at)
        d ^= word
        for _ in range(rounds):
            a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += 8
    left = np.uint64(8 * (stop - at))
    word = (load_word(at) & ~(_ALL << left)) | (np.uint64(stop - start) << np.uint64(56))
    d ^= word
    for _ in range(rounds):
        a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= _WIDE
    for _ in range(last_rounds):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _SECOND
    for _ in range(last_rounds):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d


@compiled
def _copy(start: int, stop: int, at: int) -> int:
    """Copy a span in words, up to seven bytes too many; where the copy ends."""
    for k in range(0, stop - start, 8):
        store_word(at + k, load_word(start + k))
    return at + stop - start


@compiled
def _find(slots: Codes, hi: Numbers, lo: Numbers, high: np.int64, low: np.int64) -> np.int64:
    """The slot of a hash: the one that holds its number plus one, or an empty one."""
    mask = len(slots) - 1
    at = high & mask
    while slots[at] != 0 and (lo[slots[at] - 1] != low or hi[slots[at] - 1] != high):
        at = (at + 1) & mask
    return at


@compiled
def _is_lake(start: int, stop: int) -> bool:
    if stop - start < _LAKE_SIZE or load_word(start) != _LAKE_WORD:
        return False
    return bool(load_word(start + _LAKE_SIZE - 8) == _LAKE_LAST_WORD)


@compiled
def _intern(
    ends: Numbers,
    namespaces: Numbers,
    slots: Codes,
    hi: Numbers,
    lo: Numbers,
    texts: int,
    bounds: Numbers,
    count: int,
    codes: npt.NDArray[np.int32],
) -> int:
    """Number the ends' ids into `codes`, new ones from `count` on; how many ids there are then."""
    for edge in range(len(ends)):
        for side in range(2):
            namespace, start, stop = ends[edge, 3 * side], ends[edge, 3 * side + 1], ends[edge, 3 * side + 2]
            # The text is written where it will stay if it is new.
            begin = texts + bounds[count]
            at = _copy(namespaces[namespace, 0], namespaces[namespace, 1], begin)
            at = _copy(start, stop, at)
            first, second = siphash(begin, at, _ROUNDS, _LAST_ROUNDS)
            second = (second | _ONE) if _is_lake(begin, at) else (second & ~_ONE)
            high, low = np.int64(first), np.int64(second)
            slot = _find(slots, hi, lo, high, low)
            if slots[slot] == 0:
                hi[count], lo[count] = high, low
                count += 1
                bounds[count] = at - texts
                slots[slot] = count
            codes[edge, side] = slots[slot] - 1
    return count


def _table(most: int) -> Codes:
    """Empty slots for so many ids, at most half of them ever taken."""
    return np.zeros(1 << max(4, (2 * most - 1).bit_length()), np.int32)


class Interner:
    """Numbers ids 0, 1, 2… in the order in which they are met; for a known number of ends with a known size."""

    def __init__(self, ends: int, size: int) -> None:
        self._slots = _table(ends)
        self._hi, self._lo = np.empty(ends, np.int64), np.empty(ends, np.int64)
        self._texts = np.empty(size + PADDING, np.uint8)
        self._bounds = np.zeros(ends + 1, np.int64)
        self._count = 0

    def number(self, ends: Numbers, namespaces: Numbers) -> npt.NDArray[np.int32]:
        """The numbers of the two ids of each edge; `ends` and `namespaces` as the scanner gives them."""
        codes = np.empty((len(ends), 2), np.int32)
        self._count = _intern(
            ends,
            namespaces,
            self._slots,
            self._hi,
            self._lo,
            self._texts.ctypes.data,
            self._bounds,
            self._count,
            codes,
        )
        return codes

    @property
    def ids(self) -> Ids:
        """All ids met so far."""
        bounds = self._bounds[: self._count + 1] + self._texts.ctypes.data
        return Ids(self._hi[: self._count], self._lo[: self._count], self._texts, bounds[:-1], bounds[1:])


def size_of(ends: Numbers, namespaces: Numbers) -> int:
    """How many bytes the expanded ids have together."""
    spaces = namespaces[:, 1] - namespaces[:, 0]
    return int(spaces[ends[:, 0]].sum() + spaces[ends[:, 3]].sum() + (ends[:, 2::3] - ends[:, 1::3]).sum())


@compiled
def _number_hashes(slots: Codes, hi: Numbers, lo: Numbers, codes: Codes, firsts: Numbers) -> int:
    count = 0
    mask = len(slots) - 1
    for k in range(len(hi)):
        at = hi[k] & mask
        while slots[at] != 0:
            other = firsts[slots[at] - 1]
            if lo[other] == lo[k] and hi[other] == hi[k]:
                break
            at = (at + 1) & mask
        if slots[at] == 0:
            firsts[count] = k
            count += 1
            slots[at] = count
        codes[k] = slots[at] - 1
    return count


def number_hashes(hi: Numbers, lo: Numbers) -> tuple[Codes, Numbers]:
    """Number hashes 0, 1, 2… as they are met: each one's number, and where each number was met first."""
    codes, firsts = np.empty(len(hi), np.int32), np.empty(len(hi), np.int64)
    count = _number_hashes(_table(len(hi)), hi, lo, codes, firsts)
    return codes, firsts[:count]
