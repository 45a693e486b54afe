"""Processes that die between two requests to a storage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from provenance_store.storage.hdfs import _Client
from provenance_store.storage.s3 import S3


class DeadError(Exception):
    """The process died here."""


@contextmanager
def dying_after(number: int) -> Iterator[None]:
    """The process dies when so many requests that change the storage are done."""
    calls = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            # Who is dead clears nothing away.
            if calls > number:
                raise DeadError
            return real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("upload", "rename", "chmod", "mkdir", "rm"):
            patch.setattr(_Client, name, wrap(getattr(_Client, name)))
        for name in ("write", "put", "replace", "remove"):
            patch.setattr(S3, name, wrap(getattr(S3, name)))
        yield
