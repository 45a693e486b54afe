"""A stream that never ends, step by step: what is final is given out, what may still change is carried, the rest goes.

    step = advance(carried, edges, names, watermark)
    step.graph      the dependencies that became final, for ever: edges of a graph are only ever added
    step.carried    what the next step needs

An item (an entity outside the lake, or an execution) is *open* as long as it was told of since the watermark, and then
*closed*: nothing more is told of it. A step keeps records and open items and contracts everything else away, so a
dependency between two records is final as soon as all items between them are closed, and their state is free. What is
carried depends on how much is told while the watermark waits, not on the length of the stream.

The result is the exact one where nobody tells of an item after it was closed. Where somebody does, what is told is
contracted as far as what is carried allows. An item that was used, and of which nothing told what it was made from, is
counted when it is closed: it is *unmade*, which is what such a stream shows of messages that are missing.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.contract import contract
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.native import Codes, Flags, Numbers
from provenance_store.reduction.schemas import DERIVED, GENERATED, GRAPH_SCHEMA, NAME_SCHEMA, USED

# What is known of an open item: when it was last told of, in milliseconds, and in which places it stood.
ITEM_SCHEMA = pl.Schema(
    {
        "hi": pl.Int64,
        "lo": pl.Int64,
        "told_at": pl.Int64,
        "is_used": pl.Boolean,
        "is_made": pl.Boolean,
        "is_activity": pl.Boolean,
    }
)

# Edges between hashes of ids, as HASHED_EDGE_SCHEMA has them, with the time when each was told.
TOLD_EDGE_SCHEMA = pl.Schema(
    {
        "relation": pl.Int8,
        "dependent_hi": pl.Int64,
        "dependent_lo": pl.Int64,
        "dependency_hi": pl.Int64,
        "dependency_lo": pl.Int64,
        "told_at": pl.Int64,
    }
)


class Carried(NamedTuple):
    """What one step leaves to the next: open items, edges that end in one, and names of the records at such edges."""

    items: pl.DataFrame
    edges: pl.DataFrame
    names: pl.DataFrame

    @classmethod
    def nothing(cls) -> "Carried":
        """Before the first step."""
        return cls(*(pl.DataFrame(schema=schema) for schema in (ITEM_SCHEMA, TOLD_EDGE_SCHEMA, NAME_SCHEMA)))


class Step(NamedTuple):
    """What a step gives: final dependencies, sorted; what is carried on; and how many unmade items were closed."""

    graph: pl.DataFrame
    carried: Carried
    unmade: int


def advance(carried: Carried, edges: pl.DataFrame, names: pl.DataFrame, watermark: int) -> Step:
    """Take in the edges of one run after TOLD_EDGE_SCHEMA with names after NAME_SCHEMA, up to a watermark."""
    told = pl.concat([carried.edges, edges])
    known = pl.concat([carried.names, names.filter("lake")])
    hi, lo = (
        np.concatenate([told[f"dependent_{half}"], told[f"dependency_{half}"], carried.items[half], known[half]])
        for half in ("hi", "lo")
    )
    codes, firsts = number_hashes(hi, lo)
    hi, lo = hi[firsts], lo[firsts]
    dependent, dependency, own, named = np.split(codes, np.cumsum([told.height, told.height, carried.items.height]))
    items = _Items.of(told, dependent, dependency, carried.items, own, len(firsts))
    is_record = in_lake(lo) & ~items.is_activity
    is_open = ~is_record & (items.told_at >= watermark)
    pairs = contract(told["relation"].to_numpy(), dependent, dependency, is_record, names_records=True, kept=is_open)
    is_final = is_record[pairs.output] & is_record[pairs.input]
    name_of = np.full(len(firsts), -1, np.int64)
    name_of[named] = np.arange(known.height)
    left, right = pairs.output[~is_final], pairs.input[~is_final]
    ends = np.unique(np.concatenate([left, right]))
    rest = Carried(
        items.tabulate(hi, lo, np.flatnonzero(is_open)),
        _link(hi, lo, left, right),
        known[_places(name_of, ends[is_record[ends]])],
    )
    spelled = {
        "output": known["id"].gather(_places(name_of, pairs.output[is_final])),
        "input": known["id"].gather(_places(name_of, pairs.input[is_final])),
    }
    is_unmade = items.is_used & ~items.is_made & ~items.is_activity & ~is_record & ~is_open
    graph = pl.DataFrame(spelled, schema=GRAPH_SCHEMA).sort("output", "input")
    return Step(graph, rest, int(is_unmade.sum()))


def move_watermark(watermark: int, times: Mapping[int, int], holding: Collection[int], *, period: int) -> int:
    """The watermark of a topic: a period before the largest time of the slowest partition that holds it back.

    `times` are the largest of each partition so far, all in milliseconds. A partition holds the watermark back while
    there is something in it to be read; one that was read to its end does not, as what comes to it will be new. The
    watermark never falls, and stays where it is while a partition that holds it has shown no time yet.
    """
    held = [times[partition] for partition in holding if partition in times]
    if not held or len(held) < len(holding):
        return watermark
    return max(watermark, min(held) - period)


class _Items(NamedTuple):
    """What is known of each numbered id."""

    told_at: Numbers
    is_used: Flags
    is_made: Flags
    is_activity: Flags

    @classmethod
    def of(
        cls, told: pl.DataFrame, dependent: Codes, dependency: Codes, known: pl.DataFrame, own: Codes, ids: int
    ) -> "_Items":
        """Gathered from the edges, and from what was known before of some."""
        told_at = np.full(ids, np.iinfo(np.int64).min)
        is_used, is_made, is_activity = (np.zeros(ids, np.bool_) for _ in range(3))
        for ends in (dependent, dependency):
            np.maximum.at(told_at, ends, told["told_at"].to_numpy())
        told_at[own] = np.maximum(told_at[own], known["told_at"].to_numpy())
        relation = told["relation"].to_numpy()
        is_used[dependency], is_made[dependent] = True, True
        is_activity[dependent[relation == USED]] = True
        is_activity[dependency[relation == GENERATED]] = True
        for flags, name in ((is_used, "is_used"), (is_made, "is_made"), (is_activity, "is_activity")):
            flags[own] |= known[name].to_numpy()
        return cls(told_at, is_used, is_made, is_activity)

    def tabulate(self, hi: Numbers, lo: Numbers, chosen: Numbers) -> pl.DataFrame:
        """The chosen ones after ITEM_SCHEMA."""
        columns = {"hi": hi, "lo": lo, **self._asdict()}
        return pl.DataFrame({name: values[chosen] for name, values in columns.items()}, schema=ITEM_SCHEMA)


def _link(hi: Numbers, lo: Numbers, dependent: Codes, dependency: Codes) -> pl.DataFrame:
    """Edges to carry. They tell no time: what is known of the items at their ends is carried beside them."""
    columns = {
        "relation": np.full(len(dependent), DERIVED, np.int8),
        "dependent_hi": hi[dependent],
        "dependent_lo": lo[dependent],
        "dependency_hi": hi[dependency],
        "dependency_lo": lo[dependency],
        "told_at": np.full(len(dependent), np.iinfo(np.int64).min),
    }
    return pl.DataFrame(columns, schema=TOLD_EDGE_SCHEMA)


def _places(name_of: Numbers, ids: Codes) -> Numbers:
    places = name_of[ids]
    if (places < 0).any():
        raise ValueError("a record has no name in the state")
    return places
