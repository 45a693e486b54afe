"""What a storage must be able to do for a lake to lie in it.

A storage is one cluster or bucket, and a name in it begins with `/`. Folders are there as long as they hold a file. To
add one, write a class of these methods, name it in `paths.py`, and subclass the suite in `tests/contract`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol


class Found(NamedTuple):
    """A file or folder: its bytes, when it was changed last, in nanoseconds, and what is another for other content.

    Of a folder, nobody may know.
    """

    is_folder: bool
    size: int
    modified: int
    tag: str = ""


class Storage(Protocol):
    """Files are there whole or not at all: whoever reads one sees what it was before a write, or what it is after."""

    def look(self, name: str) -> Found | None:
        """What is there under this name."""

    def names(self, folder: str) -> list[str]:
        """The names of what lies in a folder, within it; none where there is no folder."""

    def walk(self, folder: str) -> Iterator[tuple[str, Found]]:
        """All files of a folder and of those within it, by their names relative to it."""

    def read(self, name: str) -> BinaryIO:
        """A file, from any place on; FileNotFoundError where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""

    def create(self, name: str, content: bytes) -> None:
        """Write a file; FileExistsError where there is one."""

    def put(self, name: str, source: Path) -> None:
        """Write a file of this machine there, or replace what is there by it."""

    def replace(self, source: str, target: str) -> None:
        """Let a file take the place of another, or a place where none is; the source may stay."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
