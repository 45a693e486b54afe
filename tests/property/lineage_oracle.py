"""Lineage by brute force: rows as plain Python values, each with the set of input records that it depends on.

Written from DESIGN.md's table of what an output depends on, and sharing no code with capture or reduction.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Value = tuple[Any, ...]


class Row(NamedTuple):
    """Values of a row, and the ids of the records it depends on."""

    value: Value
    lineage: frozenset[str]


Rows = list[Row]


def narrow(rows: Rows, change: Callable[[Value], Iterable[Value]]) -> Rows:
    """map, filter, explode: the one record it was made from."""
    return [Row(value, row.lineage) for row in rows for value in change(row.value)]


def grouped(rows: Rows, key: Callable[[Value], Any], make: Callable[[Any, list[Value]], Value]) -> Rows:
    """GROUP BY, distinct: every record of the group."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[key(row.value)].append(row)
    return [Row(make(k, [m.value for m in members]), _all(members)) for k, members in groups.items()]


def joined(
    left: Rows,
    right: Rows,
    matches: Callable[[Value, Value], bool],
    how: str,
    make: Callable[[Value | None, Value | None], Value],
) -> Rows:
    """Both records; without a match the one; semi: the left and every matching right; anti: the left."""
    made: Rows = []
    matched_right: set[int] = set()
    for one in left:
        found = [place for place, other in enumerate(right) if matches(one.value, other.value)]
        matched_right.update(found)
        if how == "left_semi":
            if found:
                made.append(Row(one.value, one.lineage | _all(right[place] for place in found)))
        elif how == "left_anti":
            if not found:
                made.append(one)
        else:
            made += [Row(make(one.value, right[p].value), one.lineage | right[p].lineage) for p in found]
            if not found and how in {"left", "full"}:
                made.append(Row(make(one.value, None), one.lineage))
    if how in {"right", "full"}:
        made += [Row(make(None, o.value), o.lineage) for p, o in enumerate(right) if p not in matched_right]
    return made


def windowed(
    rows: Rows,
    partition: Callable[[Value], Any],
    order: Callable[[Value], Any],
    frame: tuple[int, int] | None,
    make: Callable[[Value, list[Value], int], Value],
) -> Rows:
    """The records of the frame and itself; without a frame (ranking, unbounded) the whole partition.

    A frame is given by offsets in rows. `make` gets the row, the rows of its frame in order, and its place in its
    partition.
    """
    parts: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        parts[partition(row.value)].append(row)
    made: Rows = []
    for members in parts.values():
        members.sort(key=lambda row: order(row.value))
        for place, row in enumerate(members):
            seen = members if frame is None else members[max(0, place + frame[0]) : max(0, place + frame[1] + 1)]
            made.append(Row(make(row.value, [one.value for one in seen], place), row.lineage | _all(seen)))
    return made


def as_multiset(rows: Rows) -> Counter[Row]:
    """To compare: order does not count, how often does."""
    return Counter(rows)


def _all(rows: Iterable[Row]) -> frozenset[str]:
    return frozenset().union(*(row.lineage for row in rows))
