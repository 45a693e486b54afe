"""Paths into a storage: they are paths as any other to whoever reads, and nothing on this machine is ever meant by one.

`s3://bucket/lake` and `webhdfs://namenode:9870/lake`. What pathlib does by the operating system, these do by their
storage, or not at all: given to what takes the paths of this machine, such as `os.open`, they refuse.
"""

import errno
import io
import os
import stat
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PosixPath
from typing import IO, Any, NoReturn

from provenance_store.errors import InputError, StorageError
from provenance_store.storage.port import Found, Storage

_MARK = "://"
_SCHEMES = ("s3", "webhdfs")
_NANO = 10**9


class RemotePath(PosixPath):
    """A path whose first parts are the scheme and the cluster or bucket. It holds no secret, and may be sent about."""

    @property
    def storage(self) -> Storage:
        """Where it leads."""
        return _open_storage(self.parts[0].removesuffix(":"), self.parts[1])

    @property
    def is_hdfs(self) -> bool:
        """Whether Hadoop's own clients can read it, by its address."""
        return self.parts[0] == "webhdfs:"

    @property
    def key(self) -> str:
        """Its name there."""
        return "/" + "/".join(self.parts[2:])

    def __str__(self) -> str:
        first, *rest = self.parts or ("",)
        return f"{first}//{'/'.join(rest)}" if _is_scheme(first) else super().__str__()

    def __fspath__(self) -> NoReturn:
        raise StorageError(f"{self} is not on this machine, and only a folder of this machine will do here.")

    def absolute(self) -> "RemotePath":
        """Itself: there is no working folder."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and time; FileNotFoundError where nothing is there."""
        found = self.storage.look(self.key)
        if found is None:
            raise self._missing()
        return _as_stat(found)

    def is_symlink(self) -> bool:
        """There are no links."""
        return False

    def iterdir(self) -> Generator["RemotePath", None, None]:
        """What lies in the folder."""
        return (self / name for name in self.storage.names(self.key))

    def walk_files(self) -> Iterator[tuple[str, Found]]:
        """All files below, by their names relative to this folder."""
        return self.storage.walk(self.key)

    def open(self, mode: str = "r", buffering: int = -1, *options: Any, **named: Any) -> IO[Any]:  # type: ignore[override]
        """The file, to be read only: what is written is written whole."""
        if mode not in {"r", "rb"}:
            raise StorageError(f"{self} cannot be opened with mode {mode!r}: it can only be read, or written whole.")
        try:
            file = self.storage.read(self.key)
        except FileNotFoundError:
            raise self._missing() from None
        return io.TextIOWrapper(file, *options, **named) if mode == "r" else file

    def write_bytes(self, data: Any) -> int:
        """Write the file, or replace it, in one step."""
        self.storage.write(self.key, bytes(data))
        return len(data)

    def create(self, content: bytes) -> None:
        """Write the file; FileExistsError where there is one."""
        self.storage.create(self.key, content)

    def put(self, source: Path) -> None:
        """Write a file of this machine there, in one step."""
        self.storage.put(self.key, source)

    def replace(self, target: str | os.PathLike[str]) -> "RemotePath":
        """Let the file take the place of another of the same storage, in one step; it may stay here too."""
        if not isinstance(target, RemotePath) or target.parts[:2] != self.parts[:2]:
            raise StorageError(f"{self} cannot take the place of {target}, which is in another storage.")
        self.storage.replace(self.key, target.key)
        return target

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there as soon as it holds a file."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not missing_ok:
            self.stat()
        self.storage.remove(self.key)

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    def remove_all(self) -> None:
        """Remove the folder and all that is in it, if it is there."""
        self.storage.remove(self.key)


def parse(address: str) -> RemotePath | None:
    """The path of an address; None for one of this machine."""
    scheme, mark, rest = address.partition(_MARK)
    if not mark:
        return None
    if scheme not in _SCHEMES or not rest.strip("/") or rest.startswith("/"):
        raise InputError(f"{address!r} is no place for a lake: use a folder, s3://bucket/folder or hdfs://host/folder.")
    return RemotePath(f"{scheme}:", rest)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A file of this machine to be written, which is put at a path of a storage when the block ends well."""
    if not isinstance(path, RemotePath):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        # Its name tells how it is compressed.
        file = Path(folder) / path.name
        yield file
        path.put(file)


@cache
def _open_storage(scheme: str, authority: str) -> Storage:
    # Each takes a moment to import, and few need any.
    if scheme == "s3":
        from provenance_store.storage.s3 import S3  # noqa: PLC0415

        return S3(authority)
    from provenance_store.storage.hdfs import Hdfs  # noqa: PLC0415

    return Hdfs(authority)


def _is_scheme(part: str) -> bool:
    return part.endswith(":") and part.removesuffix(":") in _SCHEMES


def _as_stat(found: Found) -> os.stat_result:
    mode = stat.S_IFDIR | 0o755 if found.is_folder else stat.S_IFREG | 0o644
    seconds = found.modified // _NANO
    sequence = (mode, 0, 0, 1, 0, 0, found.size, seconds, seconds, seconds)
    return os.stat_result(sequence, {"st_mtime": found.modified / _NANO, "st_mtime_ns": found.modified})
