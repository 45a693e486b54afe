"""Files that are there whole or not at all, and turns at them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provenance_store.storage.paths import RemotePath

_FOR_ALL, FOR_OWNER = 0o666, 0o600


def write_whole(path: Path, content: bytes, *, mode: int = _FOR_ALL) -> None:
    """Write a file, or replace it, in one step that a crash cannot tear."""
    if isinstance(path, RemotePath):
        path.write_bytes(content)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def create_whole(path: Path, content: bytes) -> None:
    """Write a file in one step; FileExistsError where there is one: of two at once, one does."""
    if isinstance(path, RemotePath):
        path.create(content)
        return
    mine = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        write_whole(mine, content)
        os.link(mine, path)
    finally:
        mine.unlink(missing_ok=True)


@contextmanager
def in_turn(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Wait for whoever has the lock at `path`, for moments only, and have it; its folder is for its owner alone.

    Where there is to be no waiting and somebody has it, BlockingIOError.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FOR_OWNER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
