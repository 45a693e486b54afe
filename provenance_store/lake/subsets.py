"""A version or some of its records, as a version of another lake in which they have the same ids."""

import os
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.contents import path_of, standing
from provenance_store.lake.layout import MARKER, Version, refuse_existing, unfinished_path, version_of
from provenance_store.lake.lines import length_of, lines_at, new_lines
from provenance_store.lake.moves import Moves
from provenance_store.lake.places import Places, Positions, places_name
from provenance_store.lake.rows import group_starts, new_rows, open_rows, write_group
from provenance_store.lake.steady import steady
from provenance_store.storage.paths import RemotePath

_CHUNK = 4 << 20


def bring(version: Version, folder: Path) -> None:
    """All of a version, with the places of its records, in a new folder of this machine."""
    if not isinstance(version.path, RemotePath):
        # Links, so that nothing is copied; nothing ever writes through one.
        shutil.copytree(version.path, folder, copy_function=os.link)
        return
    with steady(version):
        for path in version.files():
            name = version.name_of(path)
            _copy(path, folder / name)
            if Places.load(version, path) is not None:
                _copy(version.at(places_name(name)), folder / places_name(name))
    if (version.path / MARKER).exists():
        _copy(version.path / MARKER, folder / MARKER)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as content, target.open("wb") as out:
        shutil.copyfileobj(content, out, _CHUNK)


def write_subset(
    version: Version, told: Dataset, wanted: Mapping[str, Positions | Sequence[int]], root: Path
) -> Version:
    """The wanted records of each file, under the lake `root`; a file of which none is wanted is left out."""
    subset = version_of(root, version.dataset, version.name)
    refuse_existing(subset)
    unfinished = Version(subset.dataset, subset.name, unfinished_path(subset))
    unfinished.path.mkdir(parents=True)
    write = _write_rows if told.format == "parquet" else _write_lines
    try:
        with steady(version):
            for file, positions in wanted.items():
                asked = np.unique(np.asarray(positions, np.int64))
                if asked.size:
                    source, target = path_of(version, file), unfinished.path / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    moves = Moves(Places.load(version, source))
                    write(source, target, standing(version, source, asked).tolist(), moves)
                    moves.places().write(unfinished, target)
        if (version.path / MARKER).exists():
            (unfinished.path / MARKER).write_bytes((version.path / MARKER).read_bytes())
        unfinished.path.rename(subset.path)
    finally:
        shutil.rmtree(unfinished.path, ignore_errors=True)
    return subset


def _write_lines(source: Path, target: Path, stand: list[int], moves: Moves) -> None:
    with new_lines(target, target.name) as out:
        for place, line in zip(stand, lines_at(source, stand), strict=True):
            if not line:
                raise _missing(source)
            out.write(line)
            moves.remove(place - moves.read)
            moves.keep(len(line))
    moves.remove(length_of(source) - moves.read)


def _write_rows(source: Path, target: Path, stand: list[int], moves: Moves) -> None:
    with open_rows(source) as rows:
        starts = group_starts(rows)
        if min(stand) < 0 or stand[-1] >= starts[-1]:
            raise _missing(source)
        with new_rows(target, like=rows) as writer:
            for number, (first, last) in enumerate(pairwise(np.searchsorted(stand, starts).tolist())):
                if first < last:
                    group = rows.read_row_group(number)
                    write_group(writer, group.take(np.array(stand[first:last]) - starts[number]))
    for place in stand:
        moves.remove(place - moves.read)
        moves.keep(1)
    moves.remove(starts[-1] - moves.read)


def _missing(source: Path) -> InputError:
    return InputError(f"A record that is wanted of {source} is not there: it was taken out, or never was.")
