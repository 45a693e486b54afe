"""PROV-JSON documents to edge columns, many at a time.

What our own emitters write, a prefix table and relations of two texts each and nothing else, is read by a typed decoder
and expanded as columns. Any other document goes through `model.document.read_document`, which alone decides what is
rejected and why: the fast way takes only what that would take, and reads the same edges from it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import polars as pl

from provenance_store.errors import DocumentError
from provenance_store.model.document import RELATION_ENDS, read_document

# The relation of an edge is its place here; only the first two have an activity at one end.
RELATIONS = tuple(RELATION_ENDS)
USED, GENERATED, DERIVED, MEMBER = map(RELATIONS.index, ("used", "wasGeneratedBy", "wasDerivedFrom", "hadMember"))
_CODES = {relation: code for code, relation in enumerate(RELATIONS)}
_END_NAMES = tuple({f'"{end}"'.encode() for ends in RELATION_ENDS.values() for end in ends})

EDGE_SCHEMA = pl.Schema(
    {
        "message": pl.Int64,
        "relation": pl.Int8,
        "dependent": pl.String,
        "dependency": pl.String,
    }
)


class DocumentEdges(NamedTuple):
    """The edges of the documents that could be read, and the reasons why the others could not."""

    edges: pl.DataFrame
    reasons: dict[int, str]


def read_documents(documents: Iterable[tuple[int, bytes]]) -> DocumentEdges:
    """Read documents, each with the number of its message, which no two share."""
    alike: dict[tuple[tuple[str, str], ...], list[tuple[int, bytes, _Document]]] = {}
    others: list[tuple[int, bytes]] = []
    for number, value in documents:
        document = _read_plain(value)
        if document is None:
            others.append((number, value))
        else:
            alike.setdefault(tuple(document.prefix.items()), []).append((number, value, document))
    parts = []
    for prefixes, group in alike.items():
        edges = _expand(_gather(group), dict(prefixes))
        broken = set(edges.filter(pl.col("dependent").is_null() | pl.col("dependency").is_null())["message"])
        if broken:
            others += [(number, value) for number, value, _ in group if number in broken]
            edges = edges.filter(~pl.col("message").is_in(list(broken)))
        parts.append(edges)
    slow, reasons = _read_one_by_one(others)
    return DocumentEdges(pl.concat([*parts, slow]), reasons)


class _Used(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    dependent: str = msgspec.field(name="prov:activity")
    dependency: str = msgspec.field(name="prov:entity")


class _Generated(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    dependent: str = msgspec.field(name="prov:entity")
    dependency: str = msgspec.field(name="prov:activity")


class _Derived(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    dependent: str = msgspec.field(name="prov:generatedEntity")
    dependency: str = msgspec.field(name="prov:usedEntity")


class _Member(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    dependent: str = msgspec.field(name="prov:collection")
    dependency: str = msgspec.field(name="prov:entity")


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    # A document that declares no prefix has no id that could be expanded, so it may as well be read the slow way.
    prefix: dict[str, str]
    used: dict[str, _Used] = {}
    generated: dict[str, _Generated] = msgspec.field(name="wasGeneratedBy", default_factory=dict)
    derived: dict[str, _Derived] = msgspec.field(name="wasDerivedFrom", default_factory=dict)
    members: dict[str, _Member] = msgspec.field(name="hadMember", default_factory=dict)


_decoder = msgspec.json.Decoder(_Document)


def _read_plain(value: bytes) -> _Document | None:
    """The document, or None where it is not of the plain kind, or a repeated key may have hidden something of it."""
    try:
        document = _decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    edges = len(document.used) + len(document.generated) + len(document.derived) + len(document.members)
    if b"\\u" in value or sum(map(value.count, _END_NAMES)) != 2 * edges:
        return None
    return document


def _gather(group: list[tuple[int, bytes, _Document]]) -> pl.DataFrame:
    """The edges of documents, their ids as they stand."""
    numbers: list[int] = []
    codes: list[int] = []
    counts: list[int] = []
    dependents: list[str] = []
    dependencies: list[str] = []
    for number, _, document in group:
        relations = (
            (USED, document.used),
            (GENERATED, document.generated),
            (DERIVED, document.derived),
            (MEMBER, document.members),
        )
        for code, records in relations:
            if records:
                numbers.append(number)
                codes.append(code)
                counts.append(len(records))
                dependents += [record.dependent for record in records.values()]
                dependencies += [record.dependency for record in records.values()]
    spans = pl.DataFrame(
        {"message": numbers, "relation": codes, "count": counts},
        schema={"message": pl.Int64, "relation": pl.Int8, "count": pl.Int64},
    )
    repeated = spans.select(pl.col("message", "relation").repeat_by("count")).explode("message", "relation")
    return repeated.with_columns(
        pl.Series("dependent", dependents, dtype=pl.String), pl.Series("dependency", dependencies, dtype=pl.String)
    )


def _expand(edges: pl.DataFrame, prefixes: dict[str, str]) -> pl.DataFrame:
    """The edges with expanded ids; null where an id has no prefix declared here."""
    # `default` binds names without a prefix, which are no ids; a prefix with a colon can never stand before the first.
    known = {p: namespace for p, namespace in prefixes.items() if p != "default" and ":" not in p}

    def expand(name: str) -> pl.Expr:
        id_ = pl.col(name)
        expanded = [
            pl.when(id_.str.starts_with(f"{prefix}:")).then(pl.lit(namespace) + id_.str.slice(len(prefix) + 1))
            for prefix, namespace in known.items()
        ]
        return pl.coalesce(*expanded, pl.lit(None, dtype=pl.String)).alias(name)

    return edges.select("message", "relation", expand("dependent"), expand("dependency"))


def _read_one_by_one(documents: list[tuple[int, bytes]]) -> DocumentEdges:
    rows: list[tuple[int, int, str, str]] = []
    reasons: dict[int, str] = {}
    for number, value in documents:
        try:
            rows += [(number, _CODES[edge.relation], edge.dependent, edge.dependency) for edge in read_document(value)]
        except DocumentError as error:
            reasons[number] = str(error)
    return DocumentEdges(pl.DataFrame(rows, schema=EDGE_SCHEMA, orient="row"), reasons)
