"""Cypher that someone typed: run only when it can do nothing but read the lake graph.

Community Edition has no roles, so three things stand guard: read access mode, in which the server itself refuses to
write; the query's plan, which names its type and every operator; and its words, since the plan does not show what an
expression's inner query does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neo4j.graph import Node, Path, Relationship

from provenance_store.errors import InputError
from provenance_store.graph.connection import Connection

ALLOWED_PROCEDURES = frozenset(
    (
        "db.labels",
        "db.propertykeys",
        "db.relationshiptypes",
        "db.schema.nodetypeproperties",
        "db.schema.reltypeproperties",
        "db.schema.visualization",
    )
)
ALLOWED_COMMANDS = frozenset(("ShowIndexes", "ShowConstraints"))

# Texts, quoted names and comments can hold any words, and mean none of them.
_QUOTED = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<name>`(?:``|[^`])*`)|//[^\r\n]*|/\*.*?\*/""", re.DOTALL
)
_LOAD = re.compile(r"\bLOAD\s+CSV\b", re.IGNORECASE)
_CALL = re.compile(r"\bCALL\s+(?P<name>[^\s({]+(?:\s*\.\s*[^\s({]+)*)", re.IGNORECASE)
_REFUSED_OPERATORS = ("Show", "Terminate", "LoadCSV", "Administration")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a query, their values plain enough for JSON."""

    columns: list[str]
    rows: list[list[Any]]


def run_read_only(
    connection: Connection, query: str, parameters: Mapping[str, Any], *, timeout_seconds: float
) -> Table:
    """The rows of `query`, or an InputError that says why it is refused."""
    check_words(query)
    _, _, explained = connection.fetch(f"EXPLAIN {query}", parameters, timeout_seconds=timeout_seconds)
    check_plan(explained.query_type, explained.plan)
    columns, rows, _ = connection.fetch(query, parameters, timeout_seconds=timeout_seconds)
    return Table(columns, [[plain(value) for value in row] for row in rows])


def check_words(query: str) -> None:
    """Refuse by the text alone what no plan is needed for."""
    if not query.strip():
        raise InputError("The query is empty.")
    if re.search(r"\\u", query, re.IGNORECASE):
        # Neo4j decodes these before it reads the query, so any word could hide in them.
        raise InputError("Write characters as they are: `\\u…` escapes are refused here.")
    words = _QUOTED.sub(lambda found: found["name"] or " ", query)
    if _LOAD.search(words):
        raise InputError(
            "LOAD CSV is refused here: this command reads the lake graph alone, no files and no addresses."
        )
    for call in _CALL.finditer(words):
        _check_procedure(call["name"])


def check_plan(query_type: str | None, plan: Mapping[str, Any] | None) -> None:
    """Refuse by what Neo4j says the query would do."""
    if query_type != "r" or plan is None:
        raise InputError(
            "This query would write, change the schema or administer the server: only queries that read are run here."
        )
    for operator, details in _operators(plan):
        if operator == "ProcedureCall":
            _check_procedure(details.partition("(")[0])
        elif operator.startswith(_REFUSED_OPERATORS) and operator not in ALLOWED_COMMANDS:
            raise InputError(f"{operator} is refused here: this command reads the lake graph alone.")


def plain(value: Any) -> Any:
    """A value of Neo4j's as JSON has it: graph elements as their parts, times and points as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple) and not hasattr(value, "srid"):  # a point is a tuple too
        return [plain(inner) for inner in value]
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return _plain_element(value)


def _plain_element(value: Any) -> Any:
    match value:
        case Node():
            return {"labels": sorted(value.labels), "properties": plain(dict(value.items()))}
        case Relationship():
            return {"type": value.type, "properties": plain(dict(value.items()))}
        case Path():
            return {"nodes": plain(list(value.nodes)), "relationships": plain(list(value.relationships))}
        case bytes() | bytearray():
            return value.hex()
    return value.iso_format() if hasattr(value, "iso_format") else str(value)


def _operators(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield plan["operatorType"].partition("@")[0], str(plan.get("args", {}).get("Details") or "")
    for child in plan.get("children", ()):
        yield from _operators(child)


def _check_procedure(name: str) -> None:
    plain_name = re.sub(r"[\s`]", "", name).lower()
    if plain_name not in ALLOWED_PROCEDURES:
        raise InputError(
            f"Procedure {plain_name!r} is refused here. Allowed are {', '.join(sorted(ALLOWED_PROCEDURES))}."
        )
