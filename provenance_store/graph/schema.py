"""Brings a database to the schema that this release writes."""

from neo4j import ManagedTransaction

from provenance_store.errors import GraphError
from provenance_store.graph.connection import Connection, cypher

SCHEMA_VERSION = 1


def ensure_schema(connection: Connection) -> None:
    """Create what is missing; a database of a later release is refused before anything is written to it."""
    version = connection.read(_version)
    if version > SCHEMA_VERSION:
        raise GraphError(
            f"This lake graph has schema {version}, and this release knows schema {SCHEMA_VERSION}: update Headwater."
        )
    if version == SCHEMA_VERSION:
        return
    for statement in statements():
        connection.write(lambda tx, text=statement: tx.run(text).consume())  # type: ignore[misc]
    connection.write(lambda tx: tx.run(cypher("schema_mark"), version=SCHEMA_VERSION).consume())


def statements() -> list[str]:
    """The statements of `schema.cypher`: Neo4j takes schema changes one by one."""
    return [text for part in cypher("schema").split(";\n") if (text := part.strip())]


def _version(tx: ManagedTransaction) -> int:
    record = tx.run(cypher("schema_version")).single(strict=True)
    return int(record["version"])
