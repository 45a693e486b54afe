"""A version's file written anew: records taken out, changed or added, while all others keep their ids.

What is written goes into a draft of the version (see drafts.py), never where the version stands.
"""

import os
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from pathlib import Path, PurePath
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from provenance_store.lake.lines import LINE_FEED, chunks, new_lines, open_lines
from provenance_store.lake.moves import Moves
from provenance_store.lake.places import TAKEN_OUT, Places, Positions
from provenance_store.lake.rows import group_starts, new_rows, open_rows, write_group
from provenance_store.lake.steady import steady
from provenance_store.storage.paths import RemotePath, staged

UNFINISHED = ".rewriting"
_PARQUET = b"PAR1"
_SUMMARY = "_metadata"

Now = TypeVar("Now")


@dataclass(frozen=True)
class LineEdit:
    """What becomes of a file's records, by the positions in their ids. Lines come without line breaks."""

    removed: Positions | Sequence[int] = ()
    changed: Mapping[int, bytes] = field(default_factory=dict)
    appended: Sequence[bytes] = ()


@dataclass(frozen=True)
class RowEdit:
    """The same of Parquet: `changed` tells which row of `rows` a record becomes; all other rows are appended."""

    removed: Positions | Sequence[int] = ()
    changed: Mapping[int, int] = field(default_factory=dict)
    rows: pa.Table | None = None


def rewrite(version: Version, file: str, edit: LineEdit | RowEdit, draft: Version) -> None:
    """Write a file of the version into its draft, edited. Doing it again gives the same."""
    source, target = version.path / file, draft.path / file
    if source.is_symlink():
        raise InputError(f"{source} is a link, and what it leads to would stay as it is: put the file itself there.")
    with steady(version), _unfinished(target, like=source) as unfinished:
        places = Places.load(version, source)
        moves = Moves(places)
        if isinstance(edit, LineEdit):
            lines = _touched(source, places, edit.removed, edit.changed)
            _rewrite_lines(source, unfinished, lines, edit.appended, moves)
        else:
            rows = _touched(source, places, edit.removed, edit.changed)
            _rewrite_rows(source, unfinished, rows, edit, moves)
        moves.places().write(draft, target)
    if not isinstance(draft.path, RemotePath):  # else it shares nothing with the version
        remove_stale(draft, file)


@contextmanager
def _unfinished(target: Path, like: Path) -> Iterator[Path]:
    """A file of its own, which takes the place of the target when the block ends well: the target's may be shared."""
    if isinstance(target, RemotePath):
        with staged(target) as unfinished:
            yield unfinished
        return
    unfinished = target.with_name(f".{target.name}.{os.urandom(4).hex()}{UNFINISHED}")
    try:
        unfinished.touch(mode=0o600)
        yield unfinished
        shutil.copymode(like, unfinished)
        sync(unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file or folder on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _touched(
    source: Path, places: Places | None, removed: Positions | Sequence[int], changed: Mapping[int, Now]
) -> list[tuple[int, Now | None]]:
    """Where the records stand that are changed, or taken out (None), in their order."""
    both = changed.keys() & set(removed)
    if both:
        raise InputError(f"Position {min(both)} of {source} is both removed and changed: choose one.")
    touched: dict[int, Now | None] = {**dict.fromkeys(removed), **changed}
    asked = np.sort(np.fromiter(touched, np.int64, len(touched)))
    stand = asked if places is None else places.physicals(asked)
    gone = asked[(stand == TAKEN_OUT) | (asked < 0)]
    if gone.size:
        raise InputError(f"Position {gone[0]} of {source} names no record: it was taken out, or never was there.")
    return [(place, touched[original]) for place, original in zip(stand.tolist(), asked.tolist(), strict=True)]


def _rewrite_lines(
    source: Path, target: Path, touched: list[tuple[int, bytes | None]], appended: Sequence[bytes], moves: Moves
) -> None:
    with source.open("rb") as file:
        if file.read(len(_PARQUET)) == _PARQUET:
            raise InputError(f"{source} is Parquet, and was to be written as lines.")
    with open_lines(source) as lines, new_lines(target, source.name) as out:
        for place, line in touched:
            ended = _copy(lines, out, place - moves.read)
            moves.keep(place - moves.read)
            before = lines.readline() if ended else b""
            if not before:
                raise InputError(f"No line begins at byte {place} of {source}, which was to be taken out or changed.")
            if line is None:
                moves.remove(len(before))
            else:
                moves.change(len(before), _write(out, line))
        _copy_rest(lines, out, moves, more=bool(appended))
        for line in appended:
            moves.append(_write(out, line))


def _copy(source: BinaryIO, out: BinaryIO, count: int) -> bool:
    """Copy so many bytes; whether they were there, and a line ended with them."""
    last = LINE_FEED
    for chunk in chunks(source, count) if count > 0 else ():
        out.write(chunk)
        last = chunk
        count -= len(chunk)
    return count == 0 and last.endswith(LINE_FEED)


def _copy_rest(source: BinaryIO, out: BinaryIO, moves: Moves, *, more: bool) -> None:
    """Copy all that follows; where more will come behind it, its last line gets the line break that it may lack."""
    copied = whole = 0
    for chunk in chunks(source):
        out.write(chunk)
        whole = copied + end if (end := chunk.rfind(LINE_FEED) + 1) else whole
        copied += len(chunk)
    if more and whole < copied:
        moves.keep(whole)
        moves.change(copied - whole, copied - whole + out.write(LINE_FEED))
    else:
        moves.keep(copied)


def _write(out: BinaryIO, line: bytes) -> int:
    if LINE_FEED in line:
        raise InputError("A line to be written holds a line break, and would be taken for two records.")
    out.write(line + LINE_FEED)
    return len(line) + 1


def _rewrite_rows(
    source: Path, target: Path, touched: list[tuple[int, int | None]], edit: RowEdit, moves: Moves
) -> None:
    with open_rows(source) as file:
        starts = group_starts(file)
        if touched and touched[-1][0] >= starts[-1]:
            raise InputError(f"Row {touched[-1][0]} is not in {source}, which has {starts[-1]}.")
        rows = _fitting(source, file.schema_arrow, edit)
        appended = rows.take(np.setdiff1d(np.arange(rows.num_rows), list(edit.changed.values())))
        with new_rows(target, like=file) as writer:
            for number, (start, end) in enumerate(pairwise(starts)):
                first, last = (bisect_left(touched, edge, key=itemgetter(0)) for edge in (start, end))
                group = file.read_row_group(number)
                write_group(writer, _edited(group, start, touched[first:last], rows))
            write_group(writer, appended)
    for place, row in touched:
        if row is None:
            moves.keep(place - moves.read)
            moves.remove(1)
    moves.keep(starts[-1] - moves.read)
    for _ in range(appended.num_rows):
        moves.append(1)


def _fitting(source: Path, schema: pa.Schema, edit: RowEdit) -> pa.Table:
    """The rows of an edit, if the file can hold them."""
    rows = schema.empty_table() if edit.rows is None else edit.rows
    strays = [row for row in edit.changed.values() if not 0 <= row < rows.num_rows]
    if strays:
        raise InputError(f"A record was to become row {strays[0]} of {rows.num_rows}, which is not there.")
    if rows.schema.names != schema.names or rows.schema.types != schema.types:
        raise InputError(f"Rows for {source} must have its columns, with their types: {_describe(schema)}.")
    try:
        return rows.cast(schema)
    except ValueError as error:
        raise InputError(f"Rows for {source} do not fit: {error}.") from None


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def _edited(group: pa.Table, start: int, touched: list[tuple[int, int | None]], rows: pa.Table) -> pa.Table:
    if not touched:
        return group
    taken = np.arange(group.num_rows)
    for place, row in touched:
        taken[place - start] = TAKEN_OUT if row is None else group.num_rows + row
    return pa.concat_tables([group, rows]).take(taken[taken != TAKEN_OUT])


def remove_stale(version: Version, file: str) -> None:
    """Take away what others keep of a file as it was: Hadoop its checksums, Parquet summaries the ends of columns."""
    stale = [version.path / file]
    for folder in PurePath(file).parents:
        summary = version.path / folder / _SUMMARY
        summary.unlink(missing_ok=True)
        stale.append(summary)
    for path in stale:
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
