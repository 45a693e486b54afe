"""Executions that stand whole in a message, contracted where they stand."""

import numpy as np

from provenance_store.reduction.documents import Edges
from provenance_store.reduction.native import Codes, Flags, Numbers, Relations, compiled, part
from provenance_store.reduction.schemas import DERIVED, GENERATED, USED

# An edge in one word: both ids' numbers and the relation.
_ID_BITS, _RELATION_BITS = 31, 2
_FEWEST_SLOTS = 16


def contract_locally(edges: Edges, lo: Numbers, whole: Flags) -> Edges:
    """Contract what each message shows to be safe; `whole` tells which messages promise whole executions.

    `lo` is of the ids at the edges' ends, and tells which are in the lake's namespace.

    An activity of such a message can go as soon as it is read: each of its outputs is derived from each of its inputs.
    It stays where that would be more edges than it has, where its id also stands for an entity, and where it is in the
    lake's namespace. An execution without inputs leaves only that it made things that are not in the lake, because that
    is what tells them from missing ones; one without outputs leaves only what it used of such things, because being
    used is what tells them from sinks. Contracting afterwards gives the same as
    contracting at once. Edges are a set within their message.
    """
    most = len(edges.document)
    begins = np.flatnonzero(edges.document[1:] != edges.document[:-1]) + 1
    bounds = np.concatenate([[0], begins, [most]]) if most else np.zeros(1, np.int64)
    documents, relations = np.empty(most, np.int32), np.empty(most, np.int8)
    dependents, dependencies = np.empty(most, np.int32), np.empty(most, np.int32)
    count = _contract(*edges, bounds, whole, lo, documents, relations, dependents, dependencies)
    return Edges(documents[:count], relations[:count], dependents[:count], dependencies[:count])


@compiled
def _contract(  # noqa: C901 - its parts would each take a dozen columns
    documents: Codes,
    relations: Relations,
    dependents: Codes,
    dependencies: Codes,
    bounds: Numbers,
    whole: Flags,
    lo: Numbers,
    out_documents: Codes,
    out_relations: Relations,
    out_dependents: Codes,
    out_dependencies: Codes,
) -> int:
    """Contract message by message; how many edges are left."""
    ids = len(lo)
    goes, is_entity = np.zeros(ids, np.bool_), np.zeros(ids, np.bool_)
    used, made = np.zeros(ids, np.int32), np.zeros(ids, np.int32)
    # The last edge, plus one, that tells what an activity made; and for each such edge, the one before it.
    last_made, made_before = np.zeros(ids, np.int32), np.empty(len(documents), np.int32)
    met = np.zeros(_FEWEST_SLOTS, np.int64)
    count = 0
    for group in range(len(bounds) - 1):
        begin, end = bounds[group], bounds[group + 1]
        met = _cleared(met, end - begin)
        if whole[documents[begin]]:
            _find_what_goes(
                begin, end, relations, dependents, dependencies, lo, used, made, is_entity, last_made, made_before, goes
            )
        for edge in range(begin, end):
            above, below, relation = dependents[edge], dependencies[edge], relations[edge]
            next_made = 0
            if relation == GENERATED and goes[below] and (used[below] != 0 or lo[above] & 1):
                continue
            if relation == USED and goes[above]:
                next_made = last_made[above]
                if next_made != 0:
                    relation = np.int8(DERIVED)
                elif lo[below] & 1:
                    continue
            more = True
            while more:
                if next_made != 0:
                    above = dependents[next_made - 1]
                    next_made = made_before[next_made - 1]
                more = next_made != 0
                key = (np.int64(above) << (_ID_BITS + _RELATION_BITS)) | (np.int64(below) << _RELATION_BITS) | relation
                if _is_new(met, ~key):
                    out_documents[count], out_relations[count] = documents[edge], relation
                    out_dependents[count], out_dependencies[count] = above, below
                    count += 1
        for edge in range(begin, end):
            for one in (dependents[edge], dependencies[edge]):
                used[one] = made[one] = last_made[one] = 0
                is_entity[one] = goes[one] = False
    return count


@part
def _find_what_goes(
    begin: int,
    end: int,
    relations: Relations,
    dependents: Codes,
    dependencies: Codes,
    lo: Numbers,
    used: Codes,
    made: Codes,
    is_entity: Flags,
    last_made: Codes,
    made_before: Codes,
    goes: Flags,
) -> None:
    """Count and chain what the activities of a message used and made, and mark those that go."""
    for edge in range(begin, end):
        above, below = dependents[edge], dependencies[edge]
        if relations[edge] == USED:
            used[above] += 1
        else:
            is_entity[above] = True
        if relations[edge] == GENERATED:
            made[below] += 1
            made_before[edge] = last_made[below]
            last_made[below] = edge + 1
        else:
            is_entity[below] = True
    for edge in range(begin, end):
        if relations[edge] <= GENERATED:
            activity = dependents[edge] if relations[edge] == USED else dependencies[edge]
            n, m = np.int64(used[activity]), np.int64(made[activity])
            goes[activity] = n * m <= n + m and lo[activity] & 1 == 0 and not is_entity[activity]


@part
def _cleared(met: Numbers, edges: int) -> Numbers:
    """An empty table for so many edges, this one where it is large enough."""
    size = len(met)
    if size >= 2 * edges:
        met[:] = 0
        return met
    while size < 2 * edges:
        size *= 2
    return np.zeros(size, np.int64)


@part
def _is_new(met: Numbers, key: int) -> bool:
    """Whether a key (other than 0) is met for the first time; it is in the table from now on."""
    mask = len(met) - 1
    # Numbers in a row fall into slots far apart.
    at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while met[at] != 0:
        if met[at] == key:
            return False
        at = (at + 1) & mask
    met[at] = key
    return True
