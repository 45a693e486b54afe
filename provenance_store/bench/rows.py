"""Rows of text from a template and columns of numbers, written natively: hundreds of megabytes a second."""

import re
from collections.abc import Iterable

import numpy as np

from provenance_store.reduction.native import PADDING, Bytes, Numbers, compiled, load_word, part, store_byte, store_word

_FIELD = re.compile(r"<(\d*)>")
_MOST_DIGITS = 20


class RowTemplate:
    """A text with places for numbers: `<>` as it is, `<6>` with zeros before it up to six digits."""

    def __init__(self, text: str) -> None:
        pieces = _FIELD.split(text)
        texts = [piece.encode("ascii") for piece in pieces[::2]]
        self._widths = np.array([int(width or 1) for width in pieces[1::2]], np.int64)
        self._bounds = np.cumsum([0, *map(len, texts)])
        self._pieces = np.frombuffer(b"".join(texts) + b"\0" * PADDING, np.uint8)
        self._size = int(self._bounds[-1]) + _MOST_DIGITS * len(self._widths)

    def size_of(self, rows: int) -> int:
        """How many bytes so many rows take at most."""
        return rows * self._size

    def write(self, columns: Iterable[Numbers], buffer: Bytes, at: int) -> int:
        """Write a row for each place of the columns from `at` on, where there is room; where the last ends."""
        numbers = np.column_stack([*columns])
        start = buffer.ctypes.data
        return _write_rows(self._pieces.ctypes.data, self._bounds, self._widths, numbers, start + at) - start


@part
def _write_number(number: int, width: int, at: int) -> int:
    limit, digits = 10, 1
    while digits < width or number >= limit:
        limit *= 10
        digits += 1
    for place in range(at + digits - 1, at - 1, -1):
        rest = number // 10
        store_byte(place, 48 + number - 10 * rest)
        number = rest
    return at + digits


@compiled
def _write_rows(pieces: int, bounds: Numbers, widths: Numbers, numbers: Numbers, at: int) -> int:
    fields = len(widths)
    for row in range(len(numbers)):
        for piece in range(fields + 1):
            size = bounds[piece + 1] - bounds[piece]
            for k in range(0, size, 8):
                store_word(at + k, load_word(pieces + bounds[piece] + k))
            at += size
            if piece < fields:
                at = _write_number(numbers[row, piece], widths[piece], at)
    return at
