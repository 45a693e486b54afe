"""Documents a few megabytes at a time: read, contracted as far as each alone allows, and cut down to what is needed.

A piece is small enough that the tables of its ids stay in the processor's cache, which makes half of the speed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from provenance_store.reduction.documents import Edges, read_documents, summarise
from provenance_store.reduction.executions import contract_locally
from provenance_store.reduction.intern import Ids, Interned
from provenance_store.reduction.native import Codes, Flags, Numbers, compiled

_PIECE_BYTES = 3 << 20


class Piece(NamedTuple):
    """Documents as columns: of each how many edges it told and whether it shows a record; the edges left; their ids.

    The text of an id is kept where it is in the lake or stands in a document that shows no record, as only of a run
    that names none may another be written.
    """

    counts: Numbers
    shows: Flags
    reasons: dict[int, str]
    edges: Edges
    ids: Ids


def read_pieces(values: Sequence[bytes], whole: Flags, *, every_name: bool) -> Piece:
    """Read documents, piece by piece; `whole` tells which promise whole executions.

    An id is there once for each piece that it stands in.
    """
    pieces = [_read_piece(values[begin:end], whole[begin:end], every_name=every_name) for begin, end in _bounds(values)]
    if len(pieces) == 1:
        return pieces[0]
    documents = np.cumsum([0, *(len(piece.counts) for piece in pieces)]).astype(np.int32)
    ids = np.cumsum([0, *(len(piece.ids.hi) for piece in pieces)]).astype(np.int32)
    return Piece(
        np.concatenate([piece.counts for piece in pieces]),
        np.concatenate([piece.shows for piece in pieces]),
        {
            d + int(first): reason
            for first, piece in zip(documents, pieces, strict=False)
            for d, reason in piece.reasons.items()
        },
        join_edges([piece.edges for piece in pieces], documents, ids),
        join_ids([piece.ids for piece in pieces]),
    )


def join_edges(edges: Sequence[Edges], documents: Codes, ids: Codes) -> Edges:
    """Edges of several pieces, their documents and ids numbered on from the given ones."""
    return Edges(
        np.concatenate([one.document + first for one, first in zip(edges, documents, strict=False)]),
        np.concatenate([one.relation for one in edges]),
        np.concatenate([one.dependent + first for one, first in zip(edges, ids, strict=False)]),
        np.concatenate([one.dependency + first for one, first in zip(edges, ids, strict=False)]),
    )


def join_ids(ids: Sequence[Ids]) -> Ids:
    """Ids of several pieces, one after the other."""
    return Ids(
        np.concatenate([one.hi for one in ids]),
        np.concatenate([one.lo for one in ids]),
        np.concatenate([one.starts for one in ids]),
        np.concatenate([one.stops for one in ids]),
        tuple(buffer for one in ids for buffer in one.buffers),
    )


def _bounds(values: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    begin = size = 0
    for place, value in enumerate(values, 1):
        size += len(value)
        if size >= _PIECE_BYTES:
            yield begin, place
            begin, size = place, 0
    if begin < len(values) or not values:
        yield begin, len(values)


def _read_piece(values: Sequence[bytes], whole: Flags, *, every_name: bool) -> Piece:
    read = read_documents(values)
    counts, shows = summarise(read, len(values))
    edges = contract_locally(read.edges, read.ids.lo, whole)
    return Piece(counts, shows, read.reasons, *_cut_down(edges, read.ids, shows & (not every_name)))


def _cut_down(edges: Edges, ids: Interned, shows: Flags) -> tuple[Edges, Ids]:
    """The edges with the ids at their ends and no others, and of their texts those that may be needed."""
    order, places = np.empty(len(ids.hi), np.int64), np.zeros(len(ids.hi), np.int32)
    named = np.zeros(len(ids.hi), np.bool_)
    dependents, dependencies = np.empty_like(edges.dependent), np.empty_like(edges.dependency)
    count = _renumber(
        edges.document, edges.dependent, edges.dependency, shows, ids.lo, dependents, dependencies, places, order, named
    )
    kept = order[:count]
    cut = edges._replace(dependent=dependents, dependency=dependencies)
    return cut, ids.keep(kept, np.flatnonzero(named[kept]))


@compiled
def _renumber(
    documents: Codes,
    dependents: Codes,
    dependencies: Codes,
    shows: Flags,
    lo: Numbers,
    new_dependents: Codes,
    new_dependencies: Codes,
    places: Codes,
    order: Numbers,
    named: Flags,
) -> int:
    count = 0
    for edge in range(len(documents)):
        for side in range(2):
            one = dependents[edge] if side == 0 else dependencies[edge]
            if places[one] == 0:
                order[count] = one
                count += 1
                places[one] = count
            if lo[one] & 1 != 0 or not shows[documents[edge]]:
                named[one] = True
            if side == 0:
                new_dependents[edge] = places[one] - 1
            else:
                new_dependencies[edge] = places[one] - 1
    return count
