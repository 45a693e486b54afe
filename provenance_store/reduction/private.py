"""Groups of a run's edges contracted by themselves, as far as that is safe: at what no other group has heard of.

A run too large for one process is cut into groups of edges. An item that only one group speaks of is *private* to it:
all that is told of it stands there, so it can be contracted there, without a join. Where a task's functions are told in
one piece, as a Hadoop mapper and its combiner are, that is most of a run. Three steps, each linear in what it is given:

    survey(edges)                        of a group: which items it speaks of, and which of them it tells the making of
    compare(surveys)                     of a range of items, over all groups: which are shared, how many are unmade
    contract_group(edges, shared)        of a group: its edges between records and shared items

An item is known here by the upper half of its hash. Two that agree in it by chance pass for one that is shared, which
costs a join and leaves the graph as it is; where one of the two is unmade it is not counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.contract import contract
from provenance_store.reduction.hashed import number_columns
from provenance_store.reduction.intern import in_lake
from provenance_store.reduction.native import Codes, Flags, Numbers, Relations
from provenance_store.reduction.schemas import GENERATED

# An edge that is left, whatever relations led from the one end to the other.
LINK_SCHEMA = pl.Schema(dict.fromkeys(("dependent_hi", "dependent_lo", "dependency_hi", "dependency_lo"), pl.Int64))
SURVEY_SCHEMA = pl.Schema({"item": pl.Int64, "made": pl.Boolean})
SHARED_SCHEMA = pl.Schema({"group": pl.Int32, "item": pl.Int64})


class Comparison(NamedTuple):
    """Of a range of items: in which groups the shared ones are, sorted, and how many nobody made."""

    shared: pl.DataFrame
    unmade: int


def survey(edges: pl.DataFrame) -> pl.DataFrame:
    """The items of a group's edges, whatever is not a record, each once and sorted.

    An item is `made` where an edge tells what it comes from; an activity always is.
    """
    group = _Group.of(edges)
    made = np.zeros(len(group.hi), np.bool_)
    made[group.dependent] = True
    made[group.dependency[group.relation == GENERATED]] = True
    items = pl.DataFrame({"item": group.hi, "made": made}, schema=SURVEY_SCHEMA).filter(~group.lake)
    return items.group_by("item").agg(pl.col("made").any()).sort("item")


def cut(items: pl.Series, number: int, ranges: int) -> slice:
    """Where one of so many ranges lies in sorted items."""
    width = (1 << 64) // ranges
    begin = items.search_sorted(number * width - (1 << 63), "left") if number else 0
    end = items.search_sorted((number + 1) * width - (1 << 63), "left") if number + 1 < ranges else len(items)
    return slice(begin, end)


def compare(surveys: Sequence[pl.DataFrame]) -> Comparison:
    """What all groups together tell of a range of items; a group's number is its place."""
    told = [one.with_columns(group=pl.lit(number, pl.Int32)) for number, one in enumerate(surveys)]
    together = pl.concat([pl.DataFrame(schema={**SURVEY_SCHEMA, "group": pl.Int32}), *told])
    items = together.group_by("item").agg(groups=pl.len(), made=pl.col("made").any())
    shared = together.join(items.filter(pl.col("groups") > 1), on="item", how="semi")
    return Comparison(
        shared.select("group", "item").cast(SHARED_SCHEMA).sort("group", "item"), int((~items["made"]).sum())
    )


def contract_group(edges: pl.DataFrame, shared: pl.Series) -> pl.DataFrame:
    """What a group's edges come to, after LINK_SCHEMA, when its private items are contracted; `shared` is sorted.

    For a run that names records and in which no activity is named as one. A private item stays where it has so many
    edges on both sides that contracting it would make more of them: following it is left to whoever needs it.
    """
    group = _Group.of(edges)
    kept = _is_among(group.hi, shared.to_numpy()) | group.would_multiply()
    output, given = contract(
        group.relation, group.dependent, group.dependency, group.lake, names_records=True, kept=kept
    )
    hi, lo = group.hi, group.lo
    return pl.DataFrame([hi[output], lo[output], hi[given], lo[given]], schema=LINK_SCHEMA)


class _Group(NamedTuple):
    """Edges between numbered ids."""

    relation: Relations
    dependent: Codes
    dependency: Codes
    hi: Numbers
    lo: Numbers
    lake: Flags

    @classmethod
    def of(cls, edges: pl.DataFrame) -> "_Group":
        hi, lo, (dependent, dependency) = number_columns((edges, "dependent_"), (edges, "dependency_"))
        return cls(edges["relation"].to_numpy(), dependent, dependency, hi, lo, in_lake(lo))

    def would_multiply(self) -> Flags:
        above, below = (np.bincount(ends, minlength=len(self.hi)) for ends in (self.dependency, self.dependent))
        return above * below > above + below


def _is_among(items: Numbers, chosen: Numbers) -> Flags:
    if not len(chosen):
        return np.zeros(len(items), np.bool_)
    found: Flags = chosen[np.minimum(np.searchsorted(chosen, items), len(chosen) - 1)] == items
    return found
