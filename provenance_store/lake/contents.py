"""The records of a version's files, by the positions in their ids."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.layout import Version
from provenance_store.lake.lines import LINE_FEED, blocks_of, count_lines, lines_at
from provenance_store.lake.places import TAKEN_OUT, Places, Positions
from provenance_store.lake.rows import check_columns, group_starts, open_rows
from provenance_store.lake.steady import steady

_LINE_FEED = LINE_FEED[0]


def read_lines(version: Version, file: str, positions: "Positions | Sequence[int]") -> list[bytes | None]:
    """The lines of these records, without line breaks; None where no record stands.

    Of a plain file, little more is read than these lines.
    """
    path = path_of(version, file)
    with steady(version):
        stand, order = np.unique(standing(version, path, positions), return_inverse=True)
        there = stand[stand != TAKEN_OUT]
        lines = lines_at(path, there.tolist())
        found = [None] * (stand.size - there.size) + [line.removesuffix(LINE_FEED) if line else None for line in lines]
    return [found[number] for number in order.tolist()]


def read_rows(
    version: Version, file: str, positions: "Positions | Sequence[int]", columns: Sequence[str] | None = None
) -> tuple[pa.Table, Positions]:
    """The rows of those of these records that are there, and which these are, in ascending order.

    Only the row groups that hold them are read, and of these only the columns asked for.
    """
    path = path_of(version, file)
    asked = np.unique(np.asarray(positions, np.int64))
    with steady(version), open_rows(path) as rows:
        stand = standing(version, path, asked)
        check_columns(path, rows.schema_arrow, columns)
        starts = group_starts(rows)
        there = (stand != TAKEN_OUT) & (stand < starts[-1])
        stand = stand[there]
        names = list(rows.schema_arrow.names if columns is None else columns)
        found = [rows.schema_arrow.empty_table().select(names)]
        for number, (first, last) in enumerate(pairwise(np.searchsorted(stand, starts).tolist())):
            if first < last:
                group = rows.read_row_group(number, columns=names).select(names)
                found.append(group.take(stand[first:last] - starts[number]))
    return pa.concat_tables(found), asked[there]


def existing(version: Version, told: Dataset, file: str, positions: "Positions | Sequence[int]") -> Positions:
    """Those of these positions under which a record stands, in ascending order."""
    asked = np.unique(np.asarray(positions, np.int64))
    if told.format == "parquet":
        path = path_of(version, file)
        with steady(version), open_rows(path) as rows:
            stand = standing(version, path, asked)
            there = (stand != TAKEN_OUT) & (stand < rows.metadata.num_rows)
    else:
        there = np.array([line is not None for line in read_lines(version, file, asked)], bool)
    found: Positions = asked[there]
    return found


def all_lines(version: Version, file: str) -> Iterator[tuple[Positions, list[bytes]]]:
    """All lines of a file, without line breaks, with the positions of their records, in blocks of some megabytes."""
    path = path_of(version, file)
    offset = 0
    with steady(version):
        places = Places.load(version, path)
        for block in blocks_of(path):
            lines = block.split(LINE_FEED)
            if not lines[-1]:
                lines.pop()
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)
            starts = offset + np.concatenate([[0], ends + 1])[: len(lines)]
            yield starts if places is None else places.original(starts), lines
            offset += len(block)


def all_rows(
    version: Version, file: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[Positions, pa.RecordBatch]]:
    """All rows of a file with the positions of their records, in batches."""
    path = path_of(version, file)
    offset = 0
    with steady(version), open_rows(path) as rows:
        places = Places.load(version, path)
        check_columns(path, rows.schema_arrow, columns)
        for batch in rows.iter_batches(columns=None if columns is None else list(columns)):
            stand = np.arange(offset, offset + batch.num_rows)
            yield stand if places is None else places.original(stand), batch
            offset += batch.num_rows


def schema_of(version: Version, file: str) -> pa.Schema:
    """The schema of a Parquet file, which the rows that are written into it must have."""
    with open_rows(path_of(version, file)) as rows:
        return rows.schema_arrow


def count_records(version: Version, told: Dataset) -> int:
    """How many rows the files of a version hold, or lines, empty ones too."""
    with steady(version):
        return sum(map(_count_rows if told.format == "parquet" else count_lines, version.files()))


def _count_rows(path: Path) -> int:
    with open_rows(path) as rows:
        return int(rows.metadata.num_rows)


def standing(version: Version, path: Path, positions: "Positions | Sequence[int]") -> Positions:
    """Where records with these positions in their ids stand, or would: TAKEN_OUT where that is known to be nowhere."""
    asked = np.asarray(positions, np.int64)
    places = Places.load(version, path)
    return np.maximum(asked, TAKEN_OUT) if places is None else places.physicals(asked)


def path_of(version: Version, file: str) -> Path:
    """A data file of a version; InputError where there is none of that name."""
    path = version.at(file)
    if not path.is_file():
        raise InputError(f"{version.reference} has no file {file!r}.")
    return path
