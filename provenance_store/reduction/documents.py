"""PROV-JSON documents to columns: edges between numbered ids, many documents at a time.

What our own emitters write is read by the native scanner. Any other document goes through
`model.document.read_document`, which alone decides what is rejected and why.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from provenance_store.errors import DocumentError
from provenance_store.model.document import Edge, read_document
from provenance_store.reduction.intern import Interned, intern
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
    ids: Interned
    reasons: dict[int, str]


def read_documents(values: Sequence[bytes]) -> Read:
    """Read documents, numbered as they come."""
    buffer, starts, stops = pad(values)
    plain = scan(buffer, starts, stops)
    told, reasons = _read_one_by_one(values, plain.taken)
    ends = plain.ends.reshape(-1, 3)
    if not told:
        codes, ids = intern(ends, plain.namespaces, (buffer,))
        return Read(Edges(plain.document, plain.relation, codes[::2], codes[1::2]), ids, reasons)
    texts, text_starts, text_stops = pad([name.encode() for _, edge in told for name in edge[1:]])
    # Their ids are expanded already, which is to say in a namespace without a name.
    nowhere = np.full(len(text_starts), len(plain.namespaces))
    others = np.column_stack([nowhere, text_starts + texts.ctypes.data, text_stops + texts.ctypes.data])
    namespaces = np.concatenate([plain.namespaces, np.zeros((1, 2), np.int64)])
    codes, ids = intern(np.concatenate([ends, others]), namespaces, (buffer, texts))
    edges = Edges(
        np.concatenate([plain.document, np.array([document for document, _ in told], np.int32)]),
        np.concatenate([plain.relation, np.array([_CODES[edge.relation] for _, edge in told], np.int8)]),
        codes[::2],
        codes[1::2],
    )
    return Read(edges, ids, reasons)


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


def _read_one_by_one(values: Sequence[bytes], taken: Flags) -> tuple[list[tuple[int, Edge]], dict[int, str]]:
    """The edges of the documents that were not taken, with their documents, and the reasons where there are none."""
    told: list[tuple[int, Edge]] = []
    reasons: dict[int, str] = {}
    for number in np.flatnonzero(~taken).tolist():
        try:
            told += [(number, edge) for edge in read_document(values[number])]
        except DocumentError as error:
            reasons[number] = str(error)
    return told, reasons
