"""Brings a database to the schema that this release writes, by the steps between its version and ours.

A step goes from one version to the next, and may be repeated: where it is cut off, the next merge begins it again.
"""

from collections.abc import Callable

from neo4j import ManagedTransaction

from provenance_store.errors import GraphError
from provenance_store.graph.connection import Connection, cypher

_BATCH_EDGES = 20_000
# Added to the version while a backup is being restored, so that every release refuses the graph meanwhile.
RESTORING = 1_000_000


def ensure_schema(connection: Connection) -> None:
    """Take the steps that are missing; a database of a later release is refused before anything is written to it."""
    version = connection.read(read_version)
    check_version(version)
    for number, step in enumerate(STEPS[version:], start=version + 1):
        step(connection)
        connection.write(lambda tx, reached=number: tx.run(cypher("schema_mark"), version=reached).consume())  # type: ignore[misc]


def check_version(version: int) -> None:
    """Refuse a lake graph that is not whole yet, or that a later release has written: this one might misread it."""
    if version >= RESTORING:
        raise GraphError("This lake graph is being restored from a backup: try again when that is done.")
    if version > SCHEMA_VERSION:
        raise GraphError(
            f"This lake graph has schema {version}, and this release knows schema {SCHEMA_VERSION}: update Headwater."
        )


def statements(name: str) -> list[str]:
    """The statements of `<name>.cypher`: Neo4j takes schema changes one by one."""
    return [text for part in cypher(name).split(";\n") if (text := part.strip())]


def read_version(tx: ManagedTransaction) -> int:
    """The version of the database's schema; 0 where there is no lake graph yet."""
    record = tx.run(cypher("schema_version")).single(strict=True)
    return int(record["version"])


def _run_all(connection: Connection, name: str) -> None:
    for statement in statements(name):
        connection.write(lambda tx, text=statement: tx.run(text).consume())  # type: ignore[misc]


def _create(connection: Connection) -> None:
    """Version 1: keys, and an index by which the edges of a run were found."""
    _run_all(connection, "schema_1")


def _list_relationships(connection: Connection) -> None:
    """Version 2: batches list the relationships of a run, instead of the index; runs say at which change they came."""
    # The index, while it is there, makes this a look at each edge once.
    for run in connection.read(lambda tx: tx.run("MATCH (run:Run) RETURN run.id").value()):
        connection.write(lambda tx, run=run: tx.run(cypher("schema_2_clear"), run=run).consume())  # type: ignore[misc]
        connection.read(lambda tx, run=run: _list_run(connection, tx, run))  # type: ignore[misc]
    connection.write(lambda tx: tx.run(cypher("schema_2_runs")).consume())
    _run_all(connection, "schema_2")


def _list_run(connection: Connection, tx: ManagedTransaction, run: str) -> None:
    waiting: dict[int, list[int]] = {}

    def put(revision: int) -> None:
        parameters = {"run": run, "revision": revision, "relationships": waiting.pop(revision)}
        connection.write(lambda writing: writing.run(cypher("schema_2_batch"), parameters).consume())

    for revision, relationship in tx.run(cypher("schema_2_edges"), run=run):
        waiting.setdefault(revision, []).append(relationship)
        if len(waiting[revision]) >= _BATCH_EDGES:
            put(revision)
    for revision in list(waiting):
        put(revision)


def _note_prunes(connection: Connection) -> None:
    """Version 3: versions and runs remember what was pruned, and are found by it."""
    _run_all(connection, "schema_3")


def _recognise_purged(connection: Connection) -> None:
    """Version 4: purged records are tombstones, found by their fingerprints."""
    _run_all(connection, "schema_4")


def _follow_live(connection: Connection) -> None:
    """Version 5: running stream queries are followed, each bucket from where it was left."""
    _run_all(connection, "schema_5")


STEPS: tuple[Callable[[Connection], None], ...] = (
    _create, _list_relationships, _note_prunes, _recognise_purged, _follow_live,
)  # fmt: skip
SCHEMA_VERSION = len(STEPS)
