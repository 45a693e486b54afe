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
    Relations,
    Word,
    compiled,
    load_word,
    part,
    store_word,
)

_KEYS = (np.uint64(0x0706050403020100), np.uint64(0x0F0E0D0C0B0A0908))
_KEY_0, _KEY_1 = _KEYS
# SipHash's own: the words of "somepseudorandomlygeneratedbytes", and what marks the 128-bit form.
_INIT_0, _INIT_1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_INIT_2, _INIT_3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_ROUNDS, _LAST_ROUNDS = 1, 3
_WIDE, _SECOND = np.uint64(0xEE), np.uint64(0xDD)
_INITIAL = (_KEY_0 ^ _INIT_0, _KEY_1 ^ _INIT_1 ^ _WIDE, _KEY_0 ^ _INIT_2, _KEY_1 ^ _INIT_3)
_SIZE_SHIFT = np.uint64(56)
_UNSURE = 2
_ALL, _ONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1)
# The namespace has nine bytes: two words that overlap.
_LAKE_SIZE = len(LAKE_NAMESPACE)
_LAKE_WORD, _LAKE_LAST_WORD = np.frombuffer(LAKE_NAMESPACE[:8].encode() + LAKE_NAMESPACE[-8:].encode(), np.uint64)


class Ids(NamedTuple):
    """Ids: the halves of their hashes, and their expanded texts by address, which is 0 where a text is not kept."""

    hi: Numbers
    lo: Numbers
    starts: Numbers
    stops: Numbers
    buffers: tuple[Bytes, ...]  # what the addresses are in

    @property
    def lake(self) -> Flags:
        """Which are in the lake's namespace."""
        return in_lake(self.lo)


class Interned(NamedTuple):
    """Ids that were met in documents, each once: the halves of their hashes, and where they were met first.

    Their texts are not written out: of most ids no one asks for it.
    """

    hi: Numbers
    lo: Numbers
    met: Numbers  # by the number of the end
    ends: Numbers
    namespaces: Numbers
    buffers: tuple[Bytes, ...]  # what the spans are in

    def keep(self, chosen: Numbers, named: Numbers) -> Ids:
        """Some of the ids in a given order, and of some of these the texts, by their place among the chosen."""
        starts, stops = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)
        size = _lay_out(self.ends, self.namespaces, self.met, chosen, named, starts, stops)
        buffer = np.empty(size + PADDING, np.uint8)
        _expand(self.ends, self.namespaces, self.met, chosen, named, starts, stops, buffer.ctypes.data)
        return Ids(self.hi[chosen], self.lo[chosen], starts, stops, (buffer,))

    def keep_all(self) -> Ids:
        """All ids with their texts."""
        every = np.arange(len(self.hi))
        return self.keep(every, every)


def in_lake(lo: Numbers) -> Flags:
    """Whether each id is in the lake's namespace, from the lower half of its hash."""
    return (lo & 1).astype(np.bool_)


@part
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


@part
def _absorb(a: Word, b: Word, c: Word, d: Word, word: Word, rounds: int) -> tuple[Word, Word, Word, Word]:
    d ^= word
    for _ in range(rounds):
        a, b, c, d = _round(a, b, c, d)
    return a ^ word, b, c, d


@part
def _finish(a: Word, b: Word, c: Word, d: Word, rounds: int) -> tuple[Word, Word]:
    c ^= _WIDE
    for _ in range(rounds):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b ^= _SECOND
    for _ in range(rounds):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d


@part
def _first_bytes(word: Word, count: int) -> Word:
    """The word's first bytes, of which fewer than eight are asked for."""
    return word & ~(_ALL << np.uint64(8 * count))


@compiled
def siphash(start: int, stop: int, rounds: int, last_rounds: int) -> tuple[Word, Word]:
    """SipHash of the bytes between two addresses, as two words; seven bytes beyond them are read and do not count."""
    a, b, c, d = _INITIAL
    for at in range(start, stop - 7, 8):
        a, b, c, d = _absorb(a, b, c, d, load_word(at), rounds)
    left = (stop - start) & 7
    word = _first_bytes(load_word(stop - left), left) | (np.uint64(stop - start) << _SIZE_SHIFT)
    a, b, c, d = _absorb(a, b, c, d, word, rounds)
    return _finish(a, b, c, d, last_rounds)


@part
def _is_lake(start: int, stop: int) -> bool:
    if stop - start < _LAKE_SIZE or load_word(start) != _LAKE_WORD:
        return False
    return bool(load_word(start + _LAKE_SIZE - 8) == _LAKE_LAST_WORD)


@part
def _begin_hashes(namespaces: Numbers, states: npt.NDArray[np.uint64], lakes: Relations) -> None:
    """Of each namespace the hash's state after its whole words, what is left of it, and whether it is in the lake."""
    for k in range(len(namespaces)):
        start, stop = namespaces[k, 0], namespaces[k, 1]
        a, b, c, d = _INITIAL
        for at in range(start, stop - 7, 8):
            a, b, c, d = _absorb(a, b, c, d, load_word(at), _ROUNDS)
        states[k, 0], states[k, 1], states[k, 2], states[k, 3] = a, b, c, d
        left = (stop - start) & 7
        states[k, 4] = _first_bytes(load_word(stop - left), left) if left else np.uint64(0)
        lakes[k] = _UNSURE if stop - start < _LAKE_SIZE else np.int8(_is_lake(start, stop))


@part
def _hash_after(a: Word, b: Word, c: Word, d: Word, rest: Word, size: int, start: int, stop: int) -> tuple[Word, Word]:
    """The hash of a namespace of so many bytes, begun as `_begin_hashes` does, and the text after it."""
    left = size & 7
    shift = np.uint64(8 * left)
    if stop - start >= 8 - left:
        a, b, c, d = _absorb(a, b, c, d, rest | (load_word(start) << shift), _ROUNDS)
        for at in range(start + 8 - left, stop - 7, 8):
            a, b, c, d = _absorb(a, b, c, d, load_word(at), _ROUNDS)
        last = (size + stop - start) & 7
        word = _first_bytes(load_word(stop - last), last)
    else:
        word = rest | (_first_bytes(load_word(start), stop - start) << shift)
    word |= np.uint64(size + stop - start) << _SIZE_SHIFT
    a, b, c, d = _absorb(a, b, c, d, word, _ROUNDS)
    return _finish(a, b, c, d, _LAST_ROUNDS)


@part
def _copy(start: int, stop: int, at: int) -> int:
    """Copy a span in words, up to seven bytes too many; where the copy ends."""
    for k in range(0, stop - start, 8):
        store_word(at + k, load_word(start + k))
    return at + stop - start


@part
def _find(slots: Codes, hi: Numbers, lo: Numbers, high: np.int64, low: np.int64) -> np.int64:
    """The slot of a hash: the one that holds its number plus one, or an empty one."""
    mask = len(slots) - 1
    at = high & mask
    while slots[at] != 0 and (lo[slots[at] - 1] != low or hi[slots[at] - 1] != high):
        at = (at + 1) & mask
    return at


@part
def _same(start: int, stop: int, other: int) -> bool:
    """Whether two texts as long as each other are the same; what differs in ids is mostly their end."""
    at, other = stop - 8, other + stop - start - 8
    while at >= start:
        if load_word(at) != load_word(other):
            return False
        at -= 8
        other -= 8
    left = at + 8 - start
    return bool(_first_bytes(load_word(start) ^ load_word(other + 8 - left), left) == np.uint64(0))


@compiled
def _lay_out(
    ends: Numbers,
    namespaces: Numbers,
    met: Numbers,
    chosen: Numbers,
    named: Numbers,
    starts: Numbers,
    stops: Numbers,
) -> int:
    """Where each text will begin and end in a buffer, and the buffer's size."""
    size = 0
    for place in named:
        end = met[chosen[place]]
        space = ends[end, 0]
        starts[place] = size
        size += namespaces[space, 1] - namespaces[space, 0] + ends[end, 2] - ends[end, 1]
        stops[place] = size
    return size


@compiled
def _expand(
    ends: Numbers,
    namespaces: Numbers,
    met: Numbers,
    chosen: Numbers,
    named: Numbers,
    starts: Numbers,
    stops: Numbers,
    buffer: int,
) -> None:
    """Write the texts, and turn their places in the buffer into addresses."""
    for place in named:
        end = met[chosen[place]]
        space = ends[end, 0]
        starts[place] += buffer
        stops[place] += buffer
        _copy(ends[end, 1], ends[end, 2], _copy(namespaces[space, 0], namespaces[space, 1], starts[place]))


@part
def _is_lake_across(space: int, space_stop: int, start: int, stop: int) -> bool:
    """Whether a short namespace and what stands after it begin as the lake's namespace does."""
    text = np.empty(_LAKE_SIZE + PADDING, np.uint8)
    begin = text.ctypes.data
    return _is_lake(begin, _copy(start, min(stop, start + _LAKE_SIZE), _copy(space, space_stop, begin)))


@compiled
def _intern(
    ends: Numbers, namespaces: Numbers, slots: Codes, hi: Numbers, lo: Numbers, met: Numbers, codes: Codes
) -> int:
    """Number the ends' ids into `codes`; how many ids there are."""
    states, lakes = np.empty((len(namespaces), 5), np.uint64), np.empty(len(namespaces), np.int8)
    _begin_hashes(namespaces, states, lakes)
    count = 0
    for k in range(len(ends)):
        space, start, stop = ends[k, 0], ends[k, 1], ends[k, 2]
        # An execution's relations stand together, so its id often comes again at once, at the same end.
        if (
            k > 1
            and ends[k - 2, 0] == space
            and ends[k - 2, 2] - ends[k - 2, 1] == stop - start
            and _same(start, stop, ends[k - 2, 1])
        ):
            codes[k] = codes[k - 2]
            continue
        space_start, space_stop = namespaces[space, 0], namespaces[space, 1]
        first, second = _hash_after(
            states[space, 0], states[space, 1], states[space, 2], states[space, 3], states[space, 4],
            space_stop - space_start, start, stop,
        )  # fmt: skip
        is_lake = lakes[space] == 1
        if lakes[space] == _UNSURE:
            is_lake = _is_lake_across(space_start, space_stop, start, stop)
        second = (second | _ONE) if is_lake else (second & ~_ONE)
        high, low = np.int64(first), np.int64(second)
        slot = _find(slots, hi, lo, high, low)
        if slots[slot] == 0:
            hi[count], lo[count], met[count] = high, low, k
            count += 1
            slots[slot] = count
        codes[k] = slots[slot] - 1
    return count


def intern(ends: Numbers, namespaces: Numbers, buffers: tuple[Bytes, ...]) -> tuple[Codes, Interned]:
    """Number the ids of ends 0, 1, 2… as they are met; an end is a namespace's number, and a span by its addresses."""
    most = len(ends)
    hi, lo, met = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    codes = np.empty(most, np.int32)
    count = _intern(ends, namespaces, _table(most), hi, lo, met, codes)
    return codes, Interned(hi[:count], lo[:count], met[:count], ends, namespaces, buffers)


def _table(most: int) -> Codes:
    """Empty slots for so many ids, at most half of them ever taken."""
    return np.zeros(1 << max(4, (2 * most - 1).bit_length()), np.int32)


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
