"""Texts told by where they begin and end in memory, as columns of strings and in order.

Whoever tells the addresses holds on to the buffers, which are padded.
"""

import numpy as np
import polars as pl
import pyarrow as pa

from provenance_store.reduction.native import (
    PADDING,
    Numbers,
    Word,
    compiled,
    load_byte,
    load_word,
    part,
    store_word,
    swap_bytes,
)

# Fewer than this are sorted by insertion: no key is worth making for them.
_FEW = 12
# A key is seven bytes of the text, and how many of them it has, so that a text comes before what goes on with zeros.
_KEY_BYTES = 7


def to_strings(starts: Numbers, stops: Numbers) -> pl.Series:
    """Texts in UTF-8 as a column of strings."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    buffer = np.empty(int(offsets[-1]) + PADDING, np.uint8)
    _gather(starts, stops, buffer.ctypes.data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    return pl.Series(values=pl.from_arrow(pa.Array.from_buffers(pa.large_string(), len(starts), buffers)))


@compiled
def _gather(starts: Numbers, stops: Numbers, target: int) -> None:
    for k in range(len(starts)):
        for at in range(starts[k], stops[k], 8):
            store_word(target, load_word(at))
            target += 8
        target -= (starts[k] - stops[k]) & 7


@part
def _is_before(start: int, stop: int, other: int, other_stop: int) -> bool:
    while start < stop and other < other_stop and load_byte(start) == load_byte(other):
        start += 1
        other += 1
    if other == other_stop:
        return False
    return start == stop or load_byte(start) < load_byte(other)


@part
def _sort_few(order: Numbers, begin: int, end: int, starts: Numbers, stops: Numbers, depth: int) -> None:
    for place in range(begin + 1, end):
        one = order[place]
        at = place
        while at > begin and _is_before(
            starts[one] + depth,
            stops[one],
            starts[order[at - 1]] + depth,
            stops[order[at - 1]],
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = one


@part
def _common(order: Numbers, begin: int, end: int, starts: Numbers, stops: Numbers, depth: int) -> int:
    """How many bytes all these texts share from the beginning, of which `depth` are known."""
    first = order[begin]
    shared: int = stops[first] - starts[first]
    for place in range(begin + 1, end):
        one = order[place]
        shared = min(shared, stops[one] - starts[one])
        at = depth
        while at < shared and load_byte(starts[one] + at) == load_byte(starts[first] + at):
            at += 1
        shared = at
    return shared


@part
def _key(start: int, stop: int) -> Word:
    size = min(max(stop - start, 0), _KEY_BYTES)
    word: Word = swap_bytes(load_word(start)) >> np.uint64(8)
    word &= ~(np.uint64(0xFFFFFFFFFFFFFF) >> np.uint64(8 * size))
    return (word << np.uint64(8)) | np.uint64(size)


@compiled
def _sort(starts: Numbers, stops: Numbers, order: Numbers) -> None:
    """Sort `order`: groups of texts that are alike so far, by the next few bytes that are not, again and again."""
    pending = [(0, len(order), 0)]
    while pending:
        begin, end, depth = pending.pop()
        if end - begin <= _FEW:
            _sort_few(order, begin, end, starts, stops, depth)
            continue
        depth = _common(order, begin, end, starts, stops, depth)
        keys = np.empty(end - begin, np.uint64)
        for k in range(end - begin):
            one = order[begin + k]
            keys[k] = _key(starts[one] + depth, stops[one])
        by_key = np.argsort(keys)
        keys = keys[by_key]
        order[begin:end] = order[begin:end][by_key]
        first = 0
        for k in range(1, end - begin + 1):
            if k == end - begin or keys[k] != keys[first]:
                if k - first > 1 and keys[first] & np.uint64(0xFF) == np.uint64(_KEY_BYTES):
                    pending.append((begin + first, begin + k, depth + _KEY_BYTES))
                first = k


def sort_texts(starts: Numbers, stops: Numbers) -> Numbers:
    """The places of the texts in the order of their bytes, which for UTF-8 is that of their characters."""
    order = np.arange(len(starts), dtype=np.int64)
    _sort(starts, stops, order)
    return order
