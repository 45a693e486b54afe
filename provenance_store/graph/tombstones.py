"""Tombstones: what the lake graph keeps of purged records, so that answers name them and know their like again.

A tombstone is a `(:Record)` with `purged`, the id of the plan by which the record went, and `fingerprint`, a keyed hash
of what it was known by. Nothing of what stood in the record is in it, and neither merges nor prunes remove it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from neo4j import ManagedTransaction

from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.pruned import inherit
from provenance_store.graph.reduced import dataset_name
from provenance_store.graph.schema import check_version, ensure_schema, read_version

_BATCH = 10_000


class Tombstone(NamedTuple):
    """A purged record: by which plan it went, and whether its node is bare of all that a tombstone does not need."""

    id: str
    purge: str
    is_bare: bool


class Known(NamedTuple):
    """A fingerprint that a purged record had."""

    fingerprint: str
    id: str
    purge: str


def bury_records(
    connection: Connection, ids: Sequence[str], purge: str, fingerprints: Sequence[str | None] | None = None
) -> None:
    """Make records into tombstones, in transactions of bounded size. Those that are already stay as they are."""
    ensure_schema(connection)
    for begin in range(0, len(ids), _BATCH):
        part = slice(begin, begin + _BATCH)
        given = fingerprints[part] if fingerprints is not None else ()
        connection.write(lambda tx, part=part, given=given: _bury(tx, list(ids[part]), purge, list(given)))  # type: ignore[misc]


def find_buried(connection: Connection, ids: Sequence[str]) -> Iterator[Tombstone]:
    """Those of the ids that are tombstones."""
    connection.read(lambda tx: check_version(read_version(tx)))
    for begin in range(0, len(ids), _BATCH):
        part = list(ids[begin : begin + _BATCH])
        rows = connection.read(lambda tx, part=part: tx.run(cypher("tombstones_among"), records=part).values())  # type: ignore[misc]
        yield from (Tombstone(*row) for row in rows)


def find_known(connection: Connection, fingerprints: Sequence[str]) -> Iterator[Known]:
    """The purged records that had these fingerprints."""
    ensure_schema(connection)  # without its index each would be looked for among all records
    for begin in range(0, len(fingerprints), _BATCH):
        part = list(fingerprints[begin : begin + _BATCH])
        rows = connection.read(
            lambda tx, part=part: tx.run(cypher("tombstones_recognised"), fingerprints=part).values()  # type: ignore[misc]
        )
        yield from (Known(*row) for row in rows)


def _bury(tx: ManagedTransaction, records: list[str], purge: str, fingerprints: list[str | None]) -> None:
    parameters = {
        "records": records,
        "datasets": [dataset_name(record) for record in records],
        "fingerprints": fingerprints,
        "purge": purge,
    }
    tx.run(cypher("tombstones_bury"), parameters | inherit(tx, records)).consume()
