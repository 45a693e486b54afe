"""Where purges keep what they know: `<lake>/_purges/<kind>/<id>/`, a folder each that is there whole or not at all.

Its name is hidden from datasets. Nothing in there holds a personal value: ids, counts, digests, names, who approved.
"""

import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from provenance_store.errors import InputError
from provenance_store.settings import Settings
from provenance_store.storage.paths import RemotePath

ROOT = "_purges"
Kind: TypeAlias = Literal["selections", "plans"]
_FIRST: dict[Kind, str] = {"selections": "s", "plans": "p"}
_MAKERS: dict[Kind, str] = {"selections": "select", "plans": "plan SELECTION"}
_DIGITS = 16


def id_of(kind: Kind, digest: str) -> str:
    """The id of what has this digest."""
    return f"{_FIRST[kind]}-{digest[:_DIGITS]}"


def work_folder(settings: Settings) -> Path:
    """Where purges keep what must be on this machine, such as locks: in the lake, or at home, for its owner alone."""
    if not isinstance(settings.lake, RemotePath):
        return settings.lake.absolute() / ROOT
    name = hashlib.sha256(str(settings.lake).encode()).hexdigest()[:_DIGITS]
    folder = settings.home.absolute() / "purges" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def folder_of(lake: Path, kind: Kind, name: str) -> Path:
    """The folder of an id, whether or not it is there."""
    if not re.fullmatch(rf"{_FIRST[kind]}-[0-9a-f]{{{_DIGITS}}}", name):
        one = kind.removesuffix("s")
        raise InputError(f"{name!r} is not the id of a {one}: `headwater purge {_MAKERS[kind]}` tells one.")
    return lake.absolute() / ROOT / kind / name


def find(lake: Path, kind: Kind, name: str) -> Path:
    """The folder of an id; InputError where there is none."""
    folder = folder_of(lake, kind, name)
    if not folder.is_dir():
        one = kind.removesuffix("s")
        raise InputError(f"There is no {one} {name} in {lake}: `headwater purge {_MAKERS[kind]}` makes one.")
    return folder


def list_ids(lake: Path, kind: Kind) -> list[str]:
    """The ids of all that is kept, the oldest first."""
    parent = lake.absolute() / ROOT / kind
    found = [path for path in parent.iterdir() if not path.name.startswith(".")] if parent.is_dir() else []
    return [path.name for path in sorted(found, key=lambda path: (path.stat().st_mtime, path.name))]


@contextmanager
def new_folder(lake: Path, kind: Kind) -> Iterator[Path]:
    """A folder to write to, which `keep` gives its name; what was not kept when the block ends vanishes."""
    unfinished = lake.absolute() / ROOT / kind / f".{os.urandom(8).hex()}"
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    finally:
        if isinstance(unfinished, RemotePath):
            unfinished.remove_all()
        else:
            shutil.rmtree(unfinished, ignore_errors=True)


def keep(unfinished: Path, name: str, *, last: str) -> Path:
    """Give a folder that is whole its name; where the same is there already, that stays.

    Where folders have no names of their own to be given, its files get theirs, the one that tells of the others last.
    """
    folder = unfinished.with_name(name)
    if isinstance(unfinished, RemotePath):
        if not (folder / last).exists():
            names = [file for file, _ in unfinished.walk_files() if file != last]
            for file in [*names, last]:
                (unfinished / file).replace(unfinished.with_name(name) / file)
        return folder
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    return folder


def scan_parquet(file: Path) -> pl.LazyFrame:
    """A table of a purge; from elsewhere all of it is read."""
    if isinstance(file, RemotePath):
        return pl.read_parquet(io.BytesIO(file.read_bytes())).lazy()
    return pl.scan_parquet(file, glob=False)


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
