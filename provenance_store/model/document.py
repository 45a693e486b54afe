"""PROV-JSON documents: read to edges with expanded ids, and written from function executions.

All four relations that carry a dependency point the same way, from what depends to what it depends on, so a document
is a list of edges. Everything else in it (attributes, agents, other relations) is filtered out.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from provenance_store.errors import DocumentError
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX, run_namespace

RelationName: TypeAlias = Literal["used", "wasGeneratedBy", "wasDerivedFrom", "hadMember"]

# The two ends of each relation in the order (depends, depended upon).
RELATION_ENDS: Mapping[RelationName, tuple[str, str]] = {
    "used": ("prov:activity", "prov:entity"),
    "wasGeneratedBy": ("prov:entity", "prov:activity"),
    "wasDerivedFrom": ("prov:generatedEntity", "prov:usedEntity"),
    "hadMember": ("prov:collection", "prov:entity"),
}
_END_NAMES = tuple({f'"{end}"'.encode() for ends in RELATION_ENDS.values() for end in ends})
_ELEMENTS = {"prefix", "bundle", "entity", "activity", "agent", "actedOnBehalfOf", "alternateOf", "mentionOf"} | {
    *RELATION_ENDS,
    *("specializationOf", "wasAssociatedWith", "wasAttributedTo", "wasEndedBy", "wasInfluencedBy", "wasInformedBy"),
    *("wasInvalidatedBy", "wasStartedBy"),
}
# Declared in every PROV-JSON document without being written.
_IMPLICIT_PREFIXES = {"prov": "http://www.w3.org/ns/prov#", "xsd": "http://www.w3.org/2001/XMLSchema#"}


class Edge(NamedTuple):
    """One dependency as it was told, with expanded ids."""

    relation: RelationName
    dependent: str
    dependency: str


class Execution(NamedTuple):
    """One call of one function: what it used and what it generated, as compact ids (`lake:…`, `run:…`)."""

    activity: str
    used: tuple[str, ...]
    generated: tuple[str, ...]


def read_document(value: bytes) -> list[Edge]:
    """The edges of a PROV-JSON document, ids expanded; DocumentError with the reason where it breaks the contract."""
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DocumentError(f"not a PROV-JSON document: it is {_kind(document)}, not an object.")
    edges: list[Edge] = []
    _read_container(document, _IMPLICIT_PREFIXES, edges)
    if _may_repeat_a_key(value, edges):
        _reject_repeated_keys(value)
    return edges


def write_document(run: str, edges: Iterable[tuple[RelationName, str, str]]) -> bytes:
    """A PROV-JSON document of edges between compact ids (`lake:…`, `run:…`)."""
    document: dict[str, dict[str, Any]] = {
        "prefix": {"lake": LAKE_NAMESPACE, "run": run_namespace(run)},
    }
    for number, (relation, dependent, dependency) in enumerate(edges):
        first, second = RELATION_ENDS[relation]
        document.setdefault(relation, {})[f"_:{number}"] = {first: dependent, second: dependency}
    return msgspec.json.encode(document)


def compact(expanded: str) -> str:
    """How an expanded id is written in files, graph, answers and on the command line."""
    if expanded.startswith(LAKE_NAMESPACE):
        return LAKE_PREFIX + expanded[len(LAKE_NAMESPACE) :]
    return expanded


def is_lake(expanded: str) -> bool:
    """Whether an expanded id names a record of the lake, which reduction keeps."""
    return expanded.startswith(LAKE_NAMESPACE)


def _may_repeat_a_key(value: bytes, edges: list[Edge]) -> bool:
    """Whether the bytes hold more ends of relations than were read, as they do when a repeated key hid some.

    A JSON reader keeps the last of two equal keys, so edges could vanish unseen. Counting is cheap and errs towards
    True: other relations share the ends' names, and an escape may hide a name from the count.
    """
    return b"\\u" in value or sum(map(value.count, _END_NAMES)) != 2 * len(edges)


def _reject_repeated_keys(value: bytes) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise DocumentError(f"{repeated!r} stands twice in one object, so one of the two would be lost.")

    try:
        json.loads(value, object_pairs_hook=check)
    except RecursionError:
        raise DocumentError("nested too deeply to be read.") from None


def _read_container(container: Mapping[str, Any], inherited: Mapping[str, str], edges: list[Edge]) -> None:
    unknown = container.keys() - _ELEMENTS
    if unknown:
        raise DocumentError(f"{min(unknown)!r} is not an element of PROV-JSON.")
    prefixes = {**inherited, **_read_prefixes(container.get("prefix", {}))}
    for relation in RELATION_ENDS:
        for record in _objects(container, relation).values():
            # PROV-JSON writes several relations under one id as a list.
            for one in record if isinstance(record, list) else (record,):
                _read_relation(relation, one, prefixes, edges)
    for name, bundle in _objects(container, "bundle").items():
        if not isinstance(bundle, dict):
            raise DocumentError(f"bundle {name!r} is {_kind(bundle)}, not an object.")
        _read_container(bundle, prefixes, edges)


def _read_relation(relation: RelationName, record: Any, prefixes: Mapping[str, str], edges: list[Edge]) -> None:
    if not isinstance(record, dict):
        raise DocumentError(f"{relation} holds {_kind(record)}, not an object.")
    first, second = RELATION_ENDS[relation]
    dependent = _expand(record.get(first), prefixes, relation, first)
    dependency = record.get(second)
    # Only a membership may name several entities at once; elsewhere a list is not an id.
    many = relation == "hadMember" and isinstance(dependency, list)
    for one in dependency or () if many else (dependency,):
        edges.append(Edge(relation, dependent, _expand(one, prefixes, relation, second)))


def _objects(container: Mapping[str, Any], element: str) -> dict[str, Any]:
    records = container.get(element, {})
    if not isinstance(records, dict):
        raise DocumentError(f"{element} is {_kind(records)}, not an object.")
    return records


def _read_prefixes(prefixes: Any) -> dict[str, str]:
    if not isinstance(prefixes, dict) or not all(isinstance(namespace, str) for namespace in prefixes.values()):
        raise DocumentError("prefix is not an object of strings.")
    # `default` binds names without a prefix, which the contract does not take as ids.
    return {prefix: namespace for prefix, namespace in prefixes.items() if prefix != "default"}


def _expand(name: Any, prefixes: Mapping[str, str], relation: str, end: str) -> str:
    if not isinstance(name, str):
        raise DocumentError(f"{relation}: {end} is {_kind(name)}, not an id.")
    prefix, colon, local = name.partition(":")
    namespace = prefixes.get(prefix) if colon else None
    if namespace is None:
        raise DocumentError(f"{relation}: {end} {name!r} has no declared prefix.")
    return namespace + local


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    return {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}.get(type(value), "a number")
