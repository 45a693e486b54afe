"""Reading a version that a purge may be switching.

In a folder of this machine draft and version exchange names in one step. Elsewhere a switch replaces file after file,
and a file and its places are two objects, so whoever read in between could take one record for another. So the version
carries a mark while it is switched: put there before the first file is replaced, and taken away after its marker was,
which is the last. Whoever reads looks before and after: no mark, and the same marker, mean that nothing got in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from provenance_store.errors import InputError
from provenance_store.lake.layout import MARKER, Version
from provenance_store.storage.paths import RemotePath

SWITCHING = "_switching"


@contextmanager
def steady(version: Version) -> Iterator[None]:
    """What is read of the version within the block is of one state of it; else InputError, when the block has ended."""
    if not isinstance(version.path, RemotePath):
        yield
        return
    before = _look(version, version.path)
    yield
    if _look(version, version.path) != before:
        raise InputError(f"{version.reference} went through a purge while it was read: read it again.")


def _look(version: Version, folder: RemotePath) -> bytes | None:
    purge = _read(folder / SWITCHING)
    if purge is not None:
        name = purge.decode(errors="replace")
        raise InputError(
            f"{version.reference} is being changed by purge {name}, and ids cannot be told until it is done: try again "
            f"later. If that purge was interrupted, `headwater purge apply {name}` finishes it."
        )
    return _read(folder / MARKER)


def _read(file: RemotePath) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
