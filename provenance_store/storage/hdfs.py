"""HDFS, over WebHDFS by fsspec's client: no Hadoop need be installed. Who asks is `HADOOP_USER_NAME`, or the user.

A rename is atomic, also over another file; so a file is written under a name of its own, and then renamed.
"""

import getpass
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import requests
from fsspec.implementations.webhdfs import WebHDFile, WebHDFS

from provenance_store.errors import StorageError
from provenance_store.storage.port import Found

_NANO_A_MILLI = 10**6
_BLOCK = 4 << 20
_FOLDER = "DIRECTORY"
_TYPE = {"content-type": "application/octet-stream"}


class Hdfs:
    """One cluster, by the address of its namenode's WebHDFS."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._client = _Client(host, int(port or 9870), user=user)

    def look(self, name: str) -> Found | None:
        """What is there under this name."""
        try:
            return _found(self._client.info(name))
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """The names of what lies in a folder, within it; none where there is no folder."""
        return [name for name, _ in self._children(folder)]

    def walk(self, folder: str) -> Iterator[tuple[str, Found]]:
        """All files of a folder and of those within it, by their names relative to it."""
        for name, found in self._children(folder):
            if found.is_folder:
                for below, one in self.walk(f"{folder}/{name}"):
                    yield f"{name}/{below}", one
            else:
                yield name, found

    def read(self, name: str) -> BinaryIO:
        """A file, from any place on; FileNotFoundError where there is none."""
        return cast("BinaryIO", self._client.open(name, "rb", block_size=_BLOCK))

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""
        self._upload(name, content, len(content))

    def create(self, name: str, content: bytes) -> None:
        """Write a file; FileExistsError where there is one."""
        self._upload(name, content, len(content), over=False)

    def put(self, name: str, source: Path) -> None:
        """Write a file of this machine there, or replace what is there by it."""
        with source.open("rb") as file:
            self._upload(name, file, source.stat().st_size)

    def replace(self, source: str, target: str) -> None:
        """Let a file take the place of another, with its permissions, or a place where none is."""
        try:
            self._client.chmod(source, self._client.info(target)["permission"])
        except FileNotFoundError:
            self._client.mkdir(_folder_of(target))
        self._client.rename(source, target, over=True)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        self._client.rm(name, recursive=True)

    def _children(self, folder: str) -> list[tuple[str, Found]]:
        found = self.look(folder)
        if found is None or not found.is_folder:
            return []
        return [(str(info["pathSuffix"]), _found(info)) for info in self._client.ls(folder, detail=True)]

    def _check_size(self, name: str, size: int) -> None:
        found = self.look(name)
        if found is None or found.size != size:
            raise StorageError(f"{name} did not arrive whole in {self._client.url}: try again.")

    def _upload(self, name: str, content: bytes | IO[bytes], size: int, *, over: bool = True) -> None:
        """Write a hidden file, and give it its name when it is whole."""
        mine = f"{_folder_of(name)}/.{name.rpartition('/')[2]}.{os.urandom(4).hex()}.writing"
        try:
            self._client.upload(mine, content)
            self._check_size(mine, size)
            self._client.rename(mine, name, over=over)
        except BaseException:
            self.remove(mine)
            raise


class _Client(WebHDFS):  # type: ignore[misc]  # fsspec comes without types
    """What fsspec's client lacks: writing in one request, and renames that replace or refuse to."""

    cachable = False

    def _call(self, *asked: Any, **how: Any) -> Any:
        try:
            return super()._call(*asked, **how)
        except FileNotFoundError:
            raise
        except (RuntimeError, ValueError, OSError) as error:  # as fsspec's client and requests tell it
            raise StorageError(f"HDFS at {self.url} did not do what was asked of it: {error}") from None

    def upload(self, path: str, content: bytes | IO[bytes]) -> None:
        told = self._call("CREATE", "put", path, redirect=False, overwrite="true")
        try:
            self.session.put(told.headers["Location"], data=content, headers=_TYPE).raise_for_status()
        except requests.RequestException as error:
            raise StorageError(f"HDFS did not take {path}: {error}") from None

    def rename(self, source: str, target: str, *, over: bool) -> None:
        options = "OVERWRITE" if over else "NONE"
        try:
            self._call("RENAME", "put", source, destination=target, renameoptions=options)
        except StorageError:
            if not over and self.exists(target):
                raise FileExistsError(f"There is already {target} in {self.url}.") from None
            raise

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> "_File":
        return _File(self, path, mode=mode, block_size=block_size or _BLOCK, tempdir=self.tempdir, autocommit=True)


class _File(WebHDFile):  # type: ignore[misc]  # fsspec comes without types
    """Fsspec's takes whatever a datanode answers for the file's bytes, be it an error."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        if start >= end:
            return b""
        told = self.fs._call("OPEN", path=self.path, offset=start, length=end - start)  # noqa: SLF001 - of its own client
        if len(told.content) != end - start:
            raise StorageError(
                f"{self.path} gave {len(told.content)} bytes of {end - start}: it was changed meanwhile."
            )
        return bytes(told.content)


def _found(info: dict[str, Any]) -> Found:
    is_folder = str(info["type"]).upper() == _FOLDER
    modified = int(info["modificationTime"]) * _NANO_A_MILLI
    return Found(is_folder, int(info["length"]), modified, str(info["fileId"]))


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]
