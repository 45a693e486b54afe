"""From an id back to the record: the line that stands under it now."""

from collections.abc import Iterator
from pathlib import Path

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version, version_of
from provenance_store.model.ids import RecordId


def read_line(root: Path, record: str) -> bytes:
    """The line of a text file that an id names by its byte offset, without its line break."""
    parts = RecordId.parse(record)
    if parts.file is None or parts.position is None:
        raise InputError(f"{record} names its record by a key, not by a place in a file.")
    path = version_of(root, parts.dataset, parts.version).path / parts.file
    try:
        with path.open("rb") as file:
            if parts.position > 0:
                file.seek(parts.position - 1)
                if file.read(1) != b"\n":
                    raise InputError(f"No line begins at byte {parts.position} of {path}.")
            line = file.readline()
    except FileNotFoundError:
        raise InputError(f"{record} is not in the lake {root}: there is no file {path}.") from None
    if not line:
        raise InputError(f"No line begins at byte {parts.position} of {path}.")
    return line.removesuffix(b"\n")


def lines_of(version: Version) -> Iterator[tuple[str, bytes]]:
    """Every line of a version's text files with the id of its record."""
    for path in version.files():
        offset = 0
        name = str(path.relative_to(version.path))
        with path.open("rb") as file:
            for line in file:
                yield str(RecordId(version.dataset, version.name, file=name, position=offset)), line.removesuffix(b"\n")
                offset += len(line)
