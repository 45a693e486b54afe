"""S3, by obstore. Keys, region and `AWS_ENDPOINT_URL` come from the environment, or the machine's role.

A PUT and a copy within S3 are atomic, one object each; there are no folders, no links, and nothing is ever renamed.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from provenance_store.errors import InputError, StorageError
from provenance_store.storage.port import Found

# What is read at once of a file that is gone through from its beginning.
_BUFFER = 4 << 20
# S3 copies no more at once.
_LARGEST = 5 << 30
_MICRO, _NANO_A_MICRO = 10**6, 1000
_FOLDER = Found(is_folder=True, size=0, modified=0)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


class S3:
    """One bucket."""

    def __init__(self, bucket: str) -> None:
        endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
        is_plain = endpoint is not None and endpoint.startswith("http://")
        self._bucket = bucket
        self._store = S3Store(bucket, endpoint=endpoint, client_options={"allow_http": is_plain})

    def look(self, name: str) -> Found | None:
        """What is there under this name."""
        with self._asked(name) as key:
            try:
                return _found(self._store.head(key)) if key else _FOLDER
            except FileNotFoundError:
                listed = self._store.list_with_delimiter(key)
                return _FOLDER if listed["objects"] or listed["common_prefixes"] else None

    def names(self, folder: str) -> list[str]:
        """The names of what lies in a folder, within it; none where there is no folder."""
        with self._asked(folder) as key:
            listed = self._store.list_with_delimiter(key)
            paths = {*listed["common_prefixes"], *(one["path"] for one in listed["objects"])}
            return sorted(path.rpartition("/")[2] for path in paths)

    def walk(self, folder: str) -> Iterator[tuple[str, Found]]:
        """All files of a folder and of those within it, by their names relative to it."""
        with self._asked(folder) as key:
            listed = self._store.list(key).collect()
        for one in sorted(listed, key=lambda one: one["path"]):
            yield one["path"].removeprefix(f"{key}/"), _found(one)

    def read(self, name: str) -> BinaryIO:
        """A file, from any place on; FileNotFoundError where there is none."""
        with self._asked(name) as key:
            return cast("BinaryIO", io.BufferedReader(_Object(self, key, self._store.head(key)), _BUFFER))

    def read_range(self, key: str, tag: str | None, start: int, end: int) -> bytes:
        """Some bytes of an object, if it is still the one that was opened."""
        with self._asked(key):
            options: Any = {"range": (start, end), "if_match": tag}
            return bytes(self._store.get(key, options=options).bytes())

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""
        with self._asked(name) as key:
            self._store.put(key, content)

    def create(self, name: str, content: bytes) -> None:
        """Write a file; FileExistsError where there is one."""
        with self._asked(name) as key:
            try:
                self._store.put(key, content, mode="create")
            except AlreadyExistsError:
                raise FileExistsError(f"There is already {key} in bucket {self._bucket}.") from None

    def put(self, name: str, source: Path) -> None:
        """Write a file of this machine there, or replace what is there by it."""
        if source.stat().st_size > _LARGEST:
            raise InputError(f"{name} would have more than 5 GB, which S3 cannot replace in one step: divide the file.")
        with self._asked(name) as key:
            self._store.put(key, source)

    def replace(self, source: str, target: str) -> None:
        """Let a file take the place of another, or a place where none is; the source stays."""
        with self._asked(source) as key:
            self._store.copy(key, target.strip("/"))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        with self._asked(name) as key:
            self._store.delete([key, *(one["path"] for one in self._store.list(key).collect())])

    @contextmanager
    def _asked(self, name: str) -> Iterator[str]:
        """The key of a name; what S3 refuses is told in a line, as its client's own words fill a page."""
        try:
            yield name.strip("/")
        except BaseError as error:
            first = str(error).partition("\n")[0]
            raise StorageError(f"S3 did not do what was asked of s3://{self._bucket}{name}: {first}") from None


class _Object(io.RawIOBase):
    """An object as it was when it was opened: one that takes its place meanwhile is not taken for it."""

    def __init__(self, bucket: S3, key: str, told: Any) -> None:
        self._bucket, self._key, self._tag, self._size = bucket, key, told["e_tag"], int(told["size"])
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        content = self._bucket.read_range(self._key, self._tag, self._at, end)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _found(told: Any) -> Found:
    modified = round(told["last_modified"].timestamp() * _MICRO) * _NANO_A_MICRO
    return Found(is_folder=False, size=int(told["size"]), modified=modified, tag=(told["e_tag"] or "").strip('"'))
