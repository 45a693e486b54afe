"""Finds records by their key, in whichever version and hashed under whichever secret they stand."""

from collections.abc import Iterator, Sequence

from neo4j import ManagedTransaction

from provenance_store.errors import InputError
from provenance_store.graph.connection import cypher
from provenance_store.graph.snapshot import Period, Snapshot
from provenance_store.model.ids import version_id_of, version_prefix

_LAST = chr(0x10FFFF)
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000


def find_records(tx: ManagedTransaction, dataset: str, keys: Sequence[str]) -> list[str]:
    """The ids of the records of a dataset that have one of these keys, as keys stand in ids."""
    snapshot = Snapshot(tx, Period())
    ids = [f"{version}#{key}" for version in _keyed_versions(tx, dataset) for key in keys]
    found = tx.run(cypher("known"), ids=ids, changes=snapshot.changes)
    return [name for name, _, known in found.values() if known]


def _keyed_versions(tx: ManagedTransaction, dataset: str) -> Iterator[str]:
    """The versions whose records have keys, by leaps over the index of ids: one look for each version."""
    within = dataset_prefix(dataset)
    at, end = within, following(within)
    while record := tx.run(cypher("find_next"), first=at, end=end).single():
        version = version_id_of(record["id"])
        if version is None:
            at = record["id"] + "\0"
            continue
        separator = record["id"][len(version)]
        if separator == "#":
            yield version
        at = following(version + separator)


def dataset_prefix(dataset: str) -> str:
    """What the ids of a dataset's records begin with."""
    if not dataset or "/" in dataset:
        raise InputError(f"{dataset!r} names no dataset.")
    return version_prefix(dataset, "-").removesuffix("-")


def following(prefix: str) -> str:
    """The first text behind all that begin with the prefix. No database holds surrogates, so they are leapt over."""
    rest = prefix.rstrip(_LAST)
    if not rest:
        raise InputError("No text can stand behind this one: give the beginning of an id.")
    last = ord(rest[-1]) + 1
    return rest[:-1] + chr(_BEHIND_SURROGATES if last == _SURROGATES else last)
