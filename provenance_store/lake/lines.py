"""Files of lines, plain or compressed as their names tell: read in part or in blocks, and written."""

import gzip
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

LINE_FEED = b"\n"
_COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
_BLOCK = 8 << 20
_CHUNK = 1 << 20
# Python's own default of 9 takes three times as long for a hundredth less.
_GZIP_LEVEL = 6


def open_lines(path: Path) -> BinaryIO:
    """A file of lines, decompressed as its name tells."""
    file = path.open("rb")
    compression = _COMPRESSED.get(path.suffix)
    return file if compression is None else io.BufferedReader(pa.CompressedInputStream(file, compression))


@contextmanager
def new_lines(path: Path, name: str) -> Iterator[BinaryIO]:
    """A new file of lines at `path`, compressed as the `name` that it will have tells."""
    compression = _COMPRESSED.get(Path(name).suffix)
    with path.open("wb") as file:
        if compression is None:
            yield file
        elif compression == "gzip":
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            with pa.CompressedOutputStream(file, compression) as packed:
                yield packed


def lines_at(path: Path, places: Iterable[int]) -> Iterator[bytes]:
    """The lines that begin at these places, which ascend, with their line breaks; an empty one where none begins.

    Of a plain file little more is read than these lines.
    """
    with open_lines(path) as file:
        at, begins = 0, True
        for place in places:
            if place < at:
                yield b""
                continue
            if place > at:
                begins = skip(file, place - at) == LINE_FEED
            line = file.readline() if begins else b""
            at, begins = place + len(line), line.endswith(LINE_FEED)
            yield line


def skip(file: BinaryIO, count: int) -> bytes:
    """Go on by so many bytes; gives the last of them."""
    if file.seekable():
        file.seek(count - 1, os.SEEK_CUR)
        return file.read(1)
    last = b""
    for chunk in chunks(file, count):
        last = chunk[-1:]
        count -= len(chunk)
    return b"" if count else last


def chunks(file: BinaryIO, count: int | None = None) -> Iterator[bytes]:
    """The next so many bytes, or all that follow, piece by piece; fewer where the file ends."""
    left = count
    while left is None or left:
        chunk = file.read(_CHUNK if left is None else min(left, _CHUNK))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def blocks_of(path: Path) -> Iterator[bytes]:
    """All of a file in blocks of some megabytes, none of which ends within a line."""
    begun: list[bytes] = []
    with open_lines(path) as file:
        while read := file.read(_BLOCK):
            cut = read.rfind(LINE_FEED) + 1
            if cut:
                yield b"".join([*begun, read[:cut]])
                begun = []
            begun.append(read[cut:])
    if last := b"".join(begun):
        yield last


def count_lines(path: Path) -> int:
    """How many lines there are; the last may lack its line break."""
    return sum(block.count(LINE_FEED) + (not block.endswith(LINE_FEED)) for block in blocks_of(path))


def length_of(path: Path) -> int:
    """How many bytes of lines there are, after decompression."""
    if path.suffix not in _COMPRESSED:
        return path.stat().st_size
    with open_lines(path) as file:
        return sum(map(len, chunks(file)))
