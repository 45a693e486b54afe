"""Reads the files of a version for checks, as plainly as can be."""

import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import polars as pl

from provenance_store.lake.layout import Version
from provenance_store.lake.lines import open_lines
from provenance_store.storage.paths import RemotePath

_BLOCK = 50_000


def blocks_of_lines(version: Version) -> Iterator[list[bytes]]:
    """The lines of a version, some thousand at a time, without those that are empty."""
    for path in version.files():
        with open_lines(path) as lines:
            while block := [line.rstrip(b"\n") for line in islice(lines, _BLOCK)]:
                yield [line for line in block if line]


def read_json(line: bytes) -> dict[str, Any] | None:
    """The object on a line; None where there is none."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_table(version: Version, columns: Sequence[str]) -> pl.LazyFrame:
    """Columns of a version of Parquet files."""
    files = version.files()
    if isinstance(version.path, RemotePath):
        frames = [pl.read_parquet(io.BytesIO(file.read_bytes()), columns=list(columns)) for file in files]
        return pl.concat(frames).lazy()
    return pl.scan_parquet(files, glob=False, hive_partitioning=False).select(*columns)


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity, which JSON has not
