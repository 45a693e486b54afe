"""PROV-JSON documents to columns: edges between numbered ids, many documents at a time.

What our own emitters write is read by the native scanner. Any other document goes through
`model.document.read_document`, which alone decides what is rejected and why.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from provenance_store.errors import DocumentError
from provenance_store.model.document import Edge, read_document
from provenance_store.reduction.intern import Ids, Interner, size_of
from provenance_store.reduction.native import Codes, Flags, Numbers, Relations, compiled, pad
from provenance_store.reduction.scan import scan
from provenance_store.reduction.schemas import GENERATED, RELATIONS, USED

_CODES = {relation: code for code, relation in enumerate(RELATIONS)}


class Edges(NamedTuple):
    """Edges as columns, those of a document together; both ends are numbers of ids."""

    document: Codes
    relation: Relations
    dependent: Codes
    dependency: Codes


class Read(NamedTuple):
    """The edges of the documents that could be read, their ids, and the reasons why the others could not."""

    edges: Edges
    ids: Ids
    reasons: dict[int, str]


def read_documents(values: Sequence[bytes]) -> Read:
    """Read documents, numbered as they come."""
    buffer, starts, stops = pad(list(values))
    plain = scan(buffer, starts, stops)
    others, reasons = _read_one_by_one(values, plain.taken)
    told = [(document, edge) for document, edges in others.items() for edge in edges]
    texts, text_starts, text_stops = pad([name.encode() for _, edge in told for name in edge[1:]])
    slow = _as_ends(text_starts + texts.ctypes.data, text_stops + texts.ctypes.data)
    no_namespace = np.zeros((1, 2), np.int64)
    sizes = size_of(plain.ends, plain.namespaces) + size_of(slow, no_namespace)
    interner = Interner(2 * (len(plain.ends) + len(slow)), sizes)
    codes = interner.number(plain.ends, plain.namespaces)
    slow_codes = interner.number(slow, no_namespace)
    if not told:
        return Read(Edges(plain.document, plain.relation, codes[:, 0], codes[:, 1]), interner.ids, reasons)
    documents = np.array([document for document, _ in told], np.int32)
    relations = np.array([_CODES[edge.relation] for _, edge in told], np.int8)
    codes = np.concatenate([codes, slow_codes])
    edges = Edges(
        np.concatenate([plain.document, documents]),
        np.concatenate([plain.relation, relations]),
        codes[:, 0],
        codes[:, 1],
    )
    return Read(edges, interner.ids, reasons)


def summarise(read: Read, documents: int) -> tuple[Numbers, Flags]:
    """How many edges each document has, and whether an entity of the lake stands at an end.

    An activity is no entity, whatever its id.
    """
    counts, shows = np.zeros(documents, np.int64), np.zeros(documents, np.bool_)
    _summarise(*read.edges, read.ids.lo, counts, shows)
    return counts, shows


@compiled
def _summarise(
    documents: Codes,
    relations: Relations,
    dependents: Codes,
    dependencies: Codes,
    lo: Numbers,
    counts: Numbers,
    shows: Flags,
) -> None:
    for edge in range(len(documents)):
        counts[documents[edge]] += 1
        above = relations[edge] != USED and lo[dependents[edge]] & 1 != 0
        if above or (relations[edge] != GENERATED and lo[dependencies[edge]] & 1 != 0):
            shows[documents[edge]] = True


def _as_ends(starts: Numbers, stops: Numbers) -> Numbers:
    """Pairs of texts in the columns that the scanner gives, all in namespace 0."""
    ends = np.zeros((len(starts) // 2, 6), np.int64)
    ends[:, 1], ends[:, 2], ends[:, 4], ends[:, 5] = starts[::2], stops[::2], starts[1::2], stops[1::2]
    return ends


def _read_one_by_one(values: Sequence[bytes], taken: Flags) -> tuple[dict[int, list[Edge]], dict[int, str]]:
    read: dict[int, list[Edge]] = {}
    reasons: dict[int, str] = {}
    for number in np.flatnonzero(~taken).tolist():
        try:
            read[number] = read_document(values[number])
        except DocumentError as error:
            reasons[number] = str(error)
    return read, reasons
