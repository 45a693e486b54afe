"""Versions changed in one step: a draft is made beside a version, and when it is whole, the two exchange their names.

A draft is a hidden sibling, `.<version>.purge-<purge>`, that shares the version's files until they are rewritten. Its
marker names the purge among those that the version went through, which tells later which of the two is which: so a
switch that was interrupted is finished by doing it again, and one that was done is not undone.

Where a storage has neither links nor an exchange of names, a draft holds only what changes, and is put in its place
file by file: see replacing.py.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake.layout import MARKER, Version, check_name
from provenance_store.lake.replacing import replace_files
from provenance_store.lake.rewriting import UNFINISHED, sync
from provenance_store.model.files import write_whole
from provenance_store.storage.paths import RemotePath

PURGED = "purged"
_DRAFT = ".purge-"
_ASIDE = ".aside"
_WORKING_FOLDER, _EXCHANGE = -100, 2
_UNKNOWN_TO_THE_FILE_SYSTEM = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}
_CANNOT_LINK = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}


def draft_of(version: Version, purge: str) -> Version:
    """The draft of a version for a purge, whether or not it is there."""
    name = f".{version.name}{_DRAFT}{check_name(purge, 'purge')}"
    base = version.path if isinstance(version.path, RemotePath) else None
    return Version(version.dataset, version.name, version.path.with_name(name), base)


def begin_draft(version: Version, purge: str) -> Version:
    """A draft in which everything is as in the version; one that was begun before is thrown away."""
    draft = draft_of(version, purge)
    if version.path.is_symlink():
        raise InputError(f"{version.path} is a link: put the folder itself there, as a purge must change it.")
    if was_switched(version, purge):
        raise InputError(f"{version.reference} went through purge {purge} already.")
    discard(draft)
    if not isinstance(version.path, RemotePath):
        _share_all(version, draft)
    # Last, so that what has a marker holds everything.
    write_whole(draft.path / MARKER, msgspec.json.format(msgspec.json.encode(_marker(version, purge))) + b"\n")
    return draft


def was_switched(version: Version, purge: str) -> bool:
    """Whether the version is what a draft for this purge became."""
    return purge in version.marker().get(PURGED, [])


def switch(version: Version, draft: Version) -> None:
    """Let draft and version exchange their names; what the version was lies at the draft's path then."""
    purge = draft.path.name.removeprefix(f".{version.name}{_DRAFT}")
    is_done = was_switched(version, purge)
    if not is_done and not was_switched(draft, purge):
        raise InputError(f"{draft.path} is no whole draft of {version.reference}: begin it again.")
    if isinstance(draft.path, RemotePath):
        replace_files(version, draft.path, purge, is_done=is_done)
        return
    aside = _aside_of(draft)
    if not is_done:
        _sync_all(draft)
        if aside.exists() or not _exchange(version.path, draft.path):
            _exchange_by_turns(version.path, draft.path, aside)
    if aside.exists():
        aside.rename(draft.path)
    sync(version.path.parent)


def discard(draft: Version) -> None:
    """Remove what lies at the draft's path, if anything does."""
    left = [path for path in (draft.path, _aside_of(draft)) if path.exists()]
    if left and not draft.path.with_name(draft.name).exists():
        raise InputError(f"{left[0]} is all that is left of {draft.reference}: switch to it first.")
    for path in left:
        # First, so that what is left after a crash is no whole draft.
        (path / MARKER).unlink(missing_ok=True)
        if isinstance(path, RemotePath):
            path.remove_all()
        else:
            shutil.rmtree(path)
            sync(path.parent)


def _share_all(version: Version, draft: Version) -> None:
    """A folder in which everything is as in the version, but for its marker."""
    draft.path.mkdir()
    for folder, folders, files in os.walk(version.path):
        here = draft.path / Path(folder).relative_to(version.path)
        for source in (Path(folder, name) for name in [*folders, *files]):
            if source.is_dir() and not source.is_symlink():
                (here / source.name).mkdir()
            elif source != version.path / MARKER:
                _share(source, here / source.name)
    for made in _folders(draft):
        shutil.copymode(version.path / made.relative_to(draft.path), made)


def _marker(version: Version, purge: str) -> dict[str, Any]:
    told = version.marker()
    if not isinstance(told.get("made"), str):
        # The folder's own time has told its order among the versions, and the draft's is another.
        told["made"] = datetime.fromtimestamp(version.path.stat().st_mtime, UTC).isoformat()
    return {**told, PURGED: [*told.get(PURGED, []), purge]}


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        shutil.copy2(source, target, follow_symlinks=False)
        sync(target)


def _sync_all(draft: Version) -> None:
    """Have the draft on the disk, without what writers that died left in it. Files are there already."""
    for folder in _folders(draft):
        for left in folder.glob(f".*{UNFINISHED}"):
            left.unlink()
        sync(folder)


def _folders(draft: Version) -> Iterator[Path]:
    return (Path(folder) for folder, _, _ in os.walk(draft.path))


def _aside_of(draft: Version) -> Path:
    return draft.path.with_name(f"{draft.path.name}{_ASIDE}")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; whether the file system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if rename(_WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other), _EXCHANGE) == 0:
        return True
    failed = ctypes.get_errno()
    if failed in _UNKNOWN_TO_THE_FILE_SYSTEM:
        return False
    raise OSError(failed, os.strerror(failed), str(one), None, str(other))


def _exchange_by_turns(version: Path, draft: Path, aside: Path) -> None:
    """The same in steps, the last of which `switch` does; between the first two there is no version of this name."""
    if not aside.exists():
        version.rename(aside)
        sync(version.parent)
    draft.rename(version)
    sync(version.parent)
