"""Where datasets lie: `<lake root>/<dataset>/<version>/<files>`.

Each run writes a new version, named after the run, and overwrites nothing. A version appears only when it is whole:
it is written to a hidden sibling, which then gets its name in one step. Its marker `_headwater.json` tells when it was
made and from what, so that making the same version again can be told from making another under the same name.
Names that begin with `_` or `.` are no data, here as for Hadoop and Spark.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import msgspec

from provenance_store.errors import InputError
from provenance_store.storage.paths import RemotePath

MARKER = "_headwater.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,127}")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a dataset, which may not be there yet."""

    dataset: str
    name: str
    path: Path
    # Where those of its files are that are not at `path`: of a draft that holds only what changes.
    base: Path | None = None

    @property
    def reference(self) -> str:
        """How a person names it: `tweets/n1000-s1`."""
        return f"{self.dataset}/{self.name}"

    def exists(self) -> bool:
        """Whether it is there, and so whole."""
        return self.path.is_dir()

    def files(self) -> list[Path]:
        """Its data files in the order of their names, those of partition folders too."""
        folders = [folder for folder in (self.base, self.path) if folder is not None]
        # What is at `path` stands for what is not.
        found = {name: folder / name for folder in folders for name in _names(folder)}
        shown = sorted(map(PurePath, found))
        return [found[str(name)] for name in shown if not any(map(_is_hidden, name.parts))]

    def at(self, name: str) -> Path:
        """Where a file of this name is, or would be."""
        here = self.path / name
        return here if self.base is None or here.exists() else self.base / name

    def name_of(self, file: Path) -> str:
        """The name of one of its files within it."""
        folder = self.base if self.base is not None and file.is_relative_to(self.base) else self.path
        return str(file.relative_to(folder))

    def marker(self) -> dict[str, Any]:
        """What was told about it when it was made; nothing for a version someone put there by hand."""
        try:
            marker = msgspec.json.decode((self.path / MARKER).read_bytes())
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise InputError(f"{self.path / MARKER} cannot be read: {error}.") from None
        return marker if isinstance(marker, dict) else {}

    def sort_key(self) -> tuple[float, str]:
        """From the oldest to the newest. A purge touches the folder's own time, so the marker's goes first."""
        made = self.marker().get("made")
        when = datetime.fromisoformat(made).timestamp() if isinstance(made, str) else self.path.stat().st_mtime
        return when, self.name


def check_name(name: str, what: str) -> str:
    """The name, if it can name a dataset or a version."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a {what}: use 1 to 128 letters, digits, '.', '_', '=' or '-', "
            "beginning with a letter or digit. A version is referred to as dataset/version."
        )
    return name


def version_of(root: Path, dataset: str, name: str) -> Version:
    """The version of that name, whether or not it is there."""
    return Version(check_name(dataset, "dataset"), check_name(name, "version"), root.absolute() / dataset / name)


def version_path(root: Path, dataset: str, name: str) -> Path:
    """The folder of a version."""
    return version_of(root, dataset, name).path


def list_datasets(root: Path) -> list[str]:
    """The datasets that have a version."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder.name for folder in folders if _NAME.fullmatch(folder.name) and list_versions(root, folder.name)]


def list_versions(root: Path, dataset: str) -> list[Version]:
    """The versions of a dataset, the oldest first."""
    folder = root / check_name(dataset, "dataset")
    names = [child.name for child in folder.iterdir() if child.is_dir()] if folder.is_dir() else []
    found = [version_of(root, dataset, name) for name in names if _NAME.fullmatch(name)]
    return sorted(found, key=Version.sort_key)


def newest_version(root: Path, dataset: str) -> Version:
    """The version made last."""
    versions = list_versions(root, dataset)
    if not versions:
        raise InputError(
            f"There is no dataset {dataset!r} in the lake {root}. {_offer('Datasets', list_datasets(root))}"
        )
    return versions[-1]


def resolve(root: Path, reference: str) -> Version:
    """The version that `dataset/version` names, or the newest one of `dataset`."""
    dataset, slash, name = reference.partition("/")
    if not slash:
        return newest_version(root, dataset)
    version = version_of(root, dataset, name)
    if not version.exists():
        there = [one.name for one in list_versions(root, dataset)]
        if not there:
            return newest_version(root, dataset)
        raise InputError(f"Dataset {dataset!r} in {root} has no version {name!r}. {_offer('Versions', there)}")
    return version


@contextmanager
def new_version(version: Version, about: Mapping[str, Any]) -> Iterator[Path]:
    """A folder to write the version into; it becomes the version when the block ends well, and vanishes when not."""
    refuse_remote(version.path)
    refuse_existing(version)
    unfinished = unfinished_path(version)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        publish(unfinished, version, about)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def was_made(version: Version, about: Mapping[str, Any]) -> bool:
    """Whether the version is there and its marker tells all of this."""
    return version.exists() and about.items() <= version.marker().items()


def unfinished_path(version: Version) -> Path:
    """A hidden sibling of the version, of which nobody else has heard."""
    return version.path.with_name(f".{version.name}.{os.urandom(4).hex()}")


def remove_unfinished(version: Version) -> None:
    """Clear away what executions that died left of this version. For whoever holds the run's lock."""
    for path in version.path.parent.glob(f".{version.name}.????????"):
        shutil.rmtree(path, ignore_errors=True)


def publish(unfinished: Path, version: Version, about: Mapping[str, Any]) -> None:
    """Give a folder that is whole its name as a version."""
    marker = {**about, "made": datetime.now(UTC).isoformat()}
    (unfinished / MARKER).write_bytes(msgspec.json.format(msgspec.json.encode(marker)) + b"\n")
    try:
        # The kernel refuses to rename over a folder that holds anything: of two at once, one wins.
        unfinished.rename(version.path)
    except OSError as error:
        refuse_existing(version)
        raise InputError(f"{version.path} cannot be written: {error.strerror}.") from error


def refuse_remote(path: Path) -> None:
    """InputError for a lake that is not in a folder of this machine: neither DICs nor generators write there."""
    if isinstance(path, RemotePath):
        raise InputError(
            f"DICs run on a local lake, and {path} is not on this machine: run them in one (--lake FOLDER, or the "
            "setting `lake`), and copy the versions that they make."
        )


def refuse_existing(version: Version) -> None:
    """InputError if the version is there already."""
    if version.exists():
        raise InputError(
            f"Version {version.name!r} of dataset {version.dataset!r} is already in {version.path.parent.parent}, "
            "and a finished version is never written again: choose another name for the new one."
        )


def _names(folder: Path) -> list[str]:
    """The names of all files below a folder, relative to it."""
    if isinstance(folder, RemotePath):
        return [name for name, _ in folder.walk_files()]
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _offer(what: str, names: list[str]) -> str:
    return f"{what} there: {', '.join(names)}." if names else f"{what} there: none."
