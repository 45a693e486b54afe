"""What the lake graph remembers of runs that were pruned, for those who read it and for merges.

Each prune of a run has a number. It is noted on every record that the run speaks of, on the side where derivations go,
and on the version of the record, which stays when the record goes. The note counts while a run says that it was pruned
under this number: not before all notes are taken, and no longer once the run is merged again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from neo4j import ManagedTransaction

from provenance_store.graph.connection import Connection, cypher
from provenance_store.model.ids import version_id_of

T = TypeVar("T")


class PrunedMeanwhileError(Exception):
    """A record that this transaction made may be one that was just pruned, of which it did not know yet."""


class Notes(NamedTuple):
    """The numbers of the prunes that took inputs from records of a version, and outputs."""

    inputs: list[int]
    outputs: list[int]


def noted_version(record: str) -> str:
    """Where it is noted what was pruned of a record: on its version; an id that is in none stands for itself."""
    return version_id_of(record) or record


def read_notes(tx: ManagedTransaction, versions: Iterable[str]) -> dict[str, Notes]:
    """What is noted on versions; nothing of those from which nothing was pruned."""
    rows = tx.run(cypher("pruned_versions"), versions=sorted(set(versions)))
    return {version: Notes(inputs, outputs) for version, inputs, outputs in rows}


def inherit(tx: ManagedTransaction, records: Sequence[str]) -> dict[str, Any]:
    """What a merge gives to records that it has to make, as parameters of its statement.

    Such a record may be one that a prune removed, and only its version knows: so it takes over what is noted there.
    """
    versions = [noted_version(record) for record in records]
    notes = read_notes(tx, versions)
    places = {version: place for place, version in enumerate(notes)}
    return {
        # Neo4j reads null behind the end of a list.
        "version_of": [places.get(version, len(places)) for version in versions] if notes else [],
        "pruned_inputs": [note.inputs or None for note in notes.values()],
        "pruned_outputs": [note.outputs or None for note in notes.values()],
    }


def count_prunes(tx: ManagedTransaction) -> int:
    """How many prunes there were: what is inherited holds as long as there is no other."""
    return int(tx.run(cypher("snapshot")).single(strict=True)["pruned"])


def write_between_prunes(connection: Connection, work: Callable[[ManagedTransaction], T]) -> T:
    """What the transaction returns; again where a prune came in between, as it tells by a PrunedMeanwhileError."""
    while True:
        try:
            return connection.write(work)
        except PrunedMeanwhileError:
            continue
