"""A switch where names cannot be exchanged: each file of a draft takes its place in the version, in one step each.

First of all the version is marked, so that nobody reads it meanwhile (see steady.py); last of all but the mark it gets
the draft's marker, which tells that the switch was finished. Interrupted at any step, it is finished by doing it again:
what was put in its place is there for good, and what was not is still in the draft.
"""

from pathlib import PurePath

from provenance_store.lake.layout import MARKER, Version
from provenance_store.lake.places import FOLDER
from provenance_store.lake.rewriting import remove_stale
from provenance_store.lake.steady import SWITCHING
from provenance_store.model.files import write_whole
from provenance_store.storage.paths import RemotePath


def replace_files(version: Version, draft: RemotePath, purge: str, *, is_done: bool) -> None:
    """Put all files of a draft in their places; where the version has its marker already, only the mark is left."""
    if not is_done:
        write_whole(version.path / SWITCHING, purge.encode())
        for name in _names(draft):
            if not name.startswith(f"{FOLDER}/"):
                remove_stale(version, name)
            (draft / name).replace(version.path / name)
        (draft / MARKER).replace(version.path / MARKER)
    (version.path / SWITCHING).unlink(missing_ok=True)


def _names(draft: RemotePath) -> list[str]:
    """Files and places that are still in the draft, without its marker and what writers that died left."""
    names = [name for name, _ in draft.walk_files() if name != MARKER]
    return sorted(name for name in names if not any(part.startswith(".") for part in PurePath(name).parts))
