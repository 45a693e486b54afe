"""A selection: the records that a person names for a purge, kept by their ids alone.

Whatever led to them, a key or a predicate, may be personal and is not kept. A selection is named after the hash of its
ids, in their order: selecting the same records again gives the same selection.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.locating import all_keys
from provenance_store.model.files import write_whole
from provenance_store.model.ids import dataset_of, file_prefix, version_prefix
from provenance_store.model.keys import KeyRing
from provenance_store.purge import folders
from provenance_store.purge.standing import Lake
from provenance_store.settings import Settings
from provenance_store.storage.paths import staged

FILE, RECORDS = "selection.json", "records.parquet"
How: TypeAlias = Literal["ids", "keys", "where"]
_NAMED = 5
_PART = 100_000


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Who selected how many records of which datasets, by what means."""

    id: str
    made: str
    by: str
    how: How
    datasets: dict[str, int]


def select_ids(settings: Settings, ids: Iterable[str], *, by: str) -> Selection:
    """Select records by their ids, which must all be in the lake."""
    chosen = pl.Series("id", sorted(set(ids)), pl.String)
    if not len(chosen):
        raise InputError("No record is named: give at least one id.")
    for dataset in sorted(set(map(dataset_of, chosen))):
        layout.newest_version(settings.lake, dataset)
    found = Lake(settings.lake, Catalogue.load(settings.lake), KeyRing(settings)).stand(chosen, exactly=True)
    versions = [version_prefix(version.dataset, version.name) for version in found.whole]
    if lacking := sorted([*found.missing["id"], *found.gone["id"], *found.foreign, *versions]):
        raise InputError(
            f"{_list(lacking)} {'are' if len(lacking) > 1 else 'is'} not in the lake {settings.lake}: no such record, "
            "or a purge took it out. Nothing was selected."
        )
    return store(settings.lake, chosen, how="ids", by=by)


def select_keys(settings: Settings, dataset: str, keys: Sequence[tuple[str, ...]], *, by: str) -> Selection:
    """Select the records of a dataset that have one of these keys, in all its versions; each key must be in one."""
    told = Catalogue.load(settings.lake).of(dataset)
    layout.newest_version(settings.lake, dataset)
    if not told.key:
        raise InputError(
            f"The catalogue tells no key of dataset {dataset!r}: tell one, or select by ids or a predicate."
        )
    for place, key in enumerate(keys, start=1):
        if len(key) != len(told.key):
            raise InputError(
                f"Key {place} has {len(key)} parts, and a key of {dataset!r} has {len(told.key)}: "
                f"{', '.join(told.key)}."
            )
    wanted = set(keys)
    if not wanted:
        raise InputError("No key is given: a line each.")
    found = set()
    ids: list[str] = []
    for version in layout.list_versions(settings.lake, dataset):
        for file, positions, there in all_keys(version, told):
            prefix = file_prefix(dataset, version.name, file)
            for position, one in zip(positions.tolist(), there, strict=True):
                if one in wanted:
                    found.add(one)
                    ids.append(f"{prefix}{position}")
    # Keys may be personal, so they are told by their places.
    if lost := [str(place) for place, key in enumerate(keys, start=1) if key not in found]:
        raise InputError(
            f"No version of {dataset!r} has a record with key {_list(lost)} of those that were given. "
            "Nothing was selected."
        )
    return store(settings.lake, ids, how="keys", by=by)


def store(lake: Path, ids: Iterable[str], *, how: How, by: str) -> Selection:
    """Keep a selection of ids that are known to be in the lake."""
    who = check_who(by)
    chosen = pl.Series("id", ids, pl.String).unique().sort()
    counts = chosen.str.extract(r"^lake:([^/#]+)").value_counts().rows()
    selection = Selection(
        id=folders.id_of("selections", _digest(chosen)),
        made=datetime.now(UTC).isoformat(),
        by=who,
        how=how,
        datasets={dataset_of(f"lake:{quoted}"): count for quoted, count in sorted(counts)},
    )
    with folders.new_folder(lake, "selections") as folder:
        with staged(folder / RECORDS) as file:
            chosen.to_frame().write_parquet(file)
        write_whole(folder / FILE, msgspec.json.format(msgspec.json.encode(selection)) + b"\n")
        folders.keep(folder, selection.id, last=FILE)
    return open_selection(lake, selection.id)


def open_selection(lake: Path, name: str) -> Selection:
    """What was selected, in numbers."""
    folder = folders.find(lake, "selections", name)
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Selection)
    except (OSError, msgspec.DecodeError):
        raise _altered(name) from None


def read_ids(lake: Path, name: str) -> pl.Series:
    """The ids of the selected records, in their order."""
    folder = folders.find(lake, "selections", name)
    try:
        ids = folders.scan_parquet(folder / RECORDS).collect()["id"]
    except (OSError, pl.exceptions.PolarsError):
        raise _altered(name) from None
    if folders.id_of("selections", _digest(ids)) != name:
        raise _altered(name)
    return ids


def check_who(by: str) -> str:
    """The name of a person or service that answers for something."""
    who = by.strip()
    if not who or not who.isprintable():
        raise InputError("Say who you are, in printable characters: --by NAME.")
    return who


def _digest(ids: pl.Series) -> str:
    digest = hashlib.sha256()
    for part in ids.to_frame().iter_slices(_PART):
        digest.update("".join(f"{one}\n" for one in part["id"]).encode())
    return digest.hexdigest()


def _altered(name: str) -> InputError:
    return InputError(f"Selection {name} was altered: it is not as it was made. Select the records again.")


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
