"""From an id back to the record: the line that stands under it now."""

from collections.abc import Iterator
from pathlib import Path

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version, version_of
from provenance_store.lake.lines import lines_at, open_lines
from provenance_store.lake.places import Places
from provenance_store.lake.steady import steady
from provenance_store.model.ids import RecordId, file_prefix


def read_line(root: Path, record: str) -> bytes:
    """The line of a text file that an id names, without its line break."""
    parts = RecordId.parse(record)
    if parts.file is None or parts.position is None:
        raise InputError(f"{record} names its record by a key, not by a place in a file.")
    version = version_of(root, parts.dataset, parts.version)
    path = version.path / parts.file
    with steady(version):
        places = Places.load(version, path)
        place = parts.position if places is None else places.physical(parts.position)
        try:
            line = b"" if place is None else next(lines_at(path, [place]))
        except FileNotFoundError:
            raise InputError(f"{record} is not in the lake {root}: there is no file {path}.") from None
    if place is None:
        raise InputError(f"{record} is not in the lake {root}: its line was taken out of {path}, or never was there.")
    if not line:
        raise InputError(f"No line begins at byte {place} of {path}, where {record} would stand.")
    return line.removesuffix(b"\n")


def lines_of(version: Version) -> Iterator[tuple[str, bytes]]:
    """Every line of a version's text files with the id of its record."""
    for path in version.files():
        yield from lines_in(version, path)


def lines_in(version: Version, path: Path) -> Iterator[tuple[str, bytes]]:
    """Every line of one of them."""
    prefix = file_prefix(version.dataset, version.name, version.name_of(path))
    offset = 0
    with steady(version), open_lines(path) as file:
        places = Places.load(version, path)
        for line in file:
            position = offset if places is None else int(places.original([offset])[0])
            yield f"{prefix}{position}", line.removesuffix(b"\n")
            offset += len(line)
