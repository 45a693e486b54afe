"""A lock between processes that the kernel releases when its holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provenance_store.errors import ServiceError
from provenance_store.services.service import Say


@contextmanager
def locked(path: Path, *, timeout_seconds: float, say: Say) -> Iterator[None]:
    """Hold `path`'s lock; wait for another holder, and say so, but not for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout_seconds
        told = False
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"Another process has held {path} for {timeout_seconds:.0f} s. "
                    f"See who with `fuser {path}`, let it end, and try again."
                )
            if not told:
                say(f"waiting for another process that holds {path}")
                told = True
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
