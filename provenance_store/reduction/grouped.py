"""A run contracted in groups of its edges: each is searched by itself, and a search that leaves one goes on in others.

No step sees more than one group, or one range of what all groups speak of, and each is linear in what it is given:

    survey(edges)              of a group: which items and inputs it speaks of, and what it tells of them
    compare(surveys)           of a range, over all groups: the routes of what more than one of them speaks of
    Group.of(edges, routes)    of a group: its edges, ready to be searched
    begin(group)               of a group: the search from its outputs, as far as its edges lead
    go_on(group, crossings)    of a group: the searches that came to it from others
    hashed.spell_hashed        of a group, from all that was found in it: its part of the graph

A search leaves its group as a *crossing*: what output it is for, and at which item it goes on, sent to each group that
tells what this item comes from. An input that several groups speak of is at home in one of them, and crossings lead
there. So each dependency is found in one group alone, and the parts of the graph need no comparing.

Routes know an item by the upper half of its hash. Two that agree in it by chance pass for one of which more than one
group speaks: that costs a crossing to where nothing is known of it, and where one of them is unmade it is not counted.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.contract import arrange, search
from provenance_store.reduction.hashed import number_columns
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.native import Codes, Flags, Numbers
from provenance_store.reduction.schemas import GENERATED, NAME_SCHEMA

# Of an item, or of a record that is an input: whether the group tells its making, has edges from it, has edges to it.
SURVEY_SCHEMA = pl.Schema(
    {"item": pl.Int64, "record": pl.Boolean, "made": pl.Boolean, "leads": pl.Boolean, "wanted": pl.Boolean}
)
ROUTE_SCHEMA = pl.Schema({"group": pl.Int32, "item": pl.Int64, "record": pl.Boolean, "to": pl.Int32})
FOUND_SCHEMA = pl.Schema(dict.fromkeys(("output_hi", "output_lo", "input_hi", "input_lo"), pl.Int64))
CROSSING_SCHEMA = pl.Schema(
    {"to": pl.Int32, "output_hi": pl.Int64, "output_lo": pl.Int64, "item_hi": pl.Int64, "item_lo": pl.Int64}
)
SENT_NAME_SCHEMA = pl.Schema([("to", pl.Int32), *NAME_SCHEMA.items()])


class Comparison(NamedTuple):
    """Of a range: its routes, sorted by group, and how many items nobody made."""

    routes: pl.DataFrame
    unmade: int


class Reached(NamedTuple):
    """What a search came to: dependencies, and crossings sorted by where they lead."""

    found: pl.DataFrame
    crossings: pl.DataFrame


def survey(edges: pl.DataFrame) -> pl.DataFrame:
    """What a group's edges speak of, sorted. An item is `made` where they tell what it comes from; an activity is."""
    hi, lo, (dependent, dependency) = number_columns((edges, "dependent_"), (edges, "dependency_"))
    leads, wanted, made = (np.zeros(len(hi), np.bool_) for _ in range(3))
    leads[dependent] = True
    wanted[dependency] = True
    made[dependency[edges["relation"].to_numpy() == GENERATED]] = True
    record = in_lake(lo)
    table = pl.DataFrame([hi, record, made | leads, leads, wanted], schema=SURVEY_SCHEMA)
    return table.filter(~record | wanted).sort("item")


def cut(items: pl.Series, number: int, ranges: int) -> slice:
    """Where one of so many ranges lies in sorted items."""
    width = (1 << 64) // ranges
    begin = items.search_sorted(number * width - (1 << 63), "left") if number else 0
    end = items.search_sorted((number + 1) * width - (1 << 63), "left") if number + 1 < ranges else len(items)
    return slice(begin, end)


def compare(surveys: Sequence[pl.DataFrame]) -> Comparison:
    """What all groups together tell of a range; a group's number is its place."""
    told = [one.with_columns(group=pl.lit(number, pl.Int32)) for number, one in enumerate(surveys)]
    together = pl.concat([pl.DataFrame(schema={**SURVEY_SCHEMA, "group": pl.Int32}), *told])
    shared = together.filter(pl.col("item").is_duplicated())
    record = pl.col("record")
    wanted = shared.filter("wanted").select("group", "item", "record")
    leading = shared.filter(pl.col("leads") & ~record).select("item", to="group")
    homes = wanted.filter("record").with_columns(to=pl.col("group").min().over("item"))
    routes = pl.concat([wanted.filter(~record).join(leading, on="item"), homes]).filter(pl.col("group") != pl.col("to"))
    unmade = together.filter(~pl.col("made") & ~record).select("item").unique()
    made_elsewhere = shared.filter(pl.col("made") & ~record)
    return Comparison(
        routes.cast(ROUTE_SCHEMA).unique().sort("group", "item"),
        unmade.join(made_elsewhere, on="item", how="anti").height,
    )


class Group(NamedTuple):
    """Edges between numbered ids, in the order of what depends, and the routes of those that have any."""

    hi: Numbers
    lo: Numbers
    targets: Codes
    spans: Numbers
    key: Codes
    route_spans: Numbers
    route_to: Codes

    @classmethod
    def of(cls, edges: pl.DataFrame, routes: pl.DataFrame) -> "Group":
        """For a run that names records and in which no activity is named as one. `routes` are those of the group."""
        hi, lo, (dependent, dependency) = number_columns((edges, "dependent_"), (edges, "dependency_"))
        targets, spans = arrange(dependent, dependency, len(hi))
        keys, _ = number_hashes(
            np.concatenate([hi, routes["item"]]), np.concatenate([in_lake(lo), routes["record"]]).astype(np.int64)
        )
        key, of_route = keys[: len(hi)], keys[len(hi) :]
        route_to, route_spans = arrange(of_route, routes["to"].to_numpy(), len(keys))
        return cls(hi, lo, targets, spans, key, route_spans, route_to)

    def save(self, file: Path) -> None:
        """Keep it for the steps to come."""
        with file.open("wb") as out:
            np.savez(out, **self._asdict())

    @classmethod
    def load(cls, file: Path) -> "Group":
        """As it was saved."""
        with np.load(file) as arrays:
            return cls(**arrays)

    @property
    def records(self) -> Flags:
        """Which ids are records: a search ends there."""
        return in_lake(self.lo)


def begin(group: Group) -> Reached:
    """Search from every output of the group."""
    outputs = np.flatnonzero(group.records & (np.diff(group.spans) > 0)).astype(np.int32)
    return _search(group, outputs, outputs, group.hi, group.lo)


def go_on(group: Group, crossings: pl.DataFrame) -> Reached:
    """Search on from where crossings lead, each of them given once."""
    at_home = crossings.filter(pl.col("item_lo") & 1 == 1)
    found = at_home.select(
        "output_hi", "output_lo", pl.col("item_hi").alias("input_hi"), pl.col("item_lo").alias("input_lo")
    )
    onward = crossings.filter(pl.col("item_lo") & 1 == 0)
    hi, lo, (output,) = number_columns((onward, "output_"))
    codes, _ = number_hashes(
        np.concatenate([group.hi, onward["item_hi"]]), np.concatenate([group.lo, onward["item_lo"]])
    )
    item = codes[len(group.hi) :]
    order = np.argsort(output, kind="stable")
    order = order[item[order] < len(group.hi)]  # of others nothing is told here: a route of the same upper half
    reached = _search(group, output[order], item[order], hi, lo)
    return Reached(pl.concat([found, reached.found]), reached.crossings)


def names_to_send(crossings: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The names, after SENT_NAME_SCHEMA, of the records in crossings, for where they lead."""
    ends = [crossings.select("to", hi=f"{end}_hi", lo=f"{end}_lo") for end in ("output", "item")]
    needed = pl.concat(ends).filter(pl.col("lo") & 1 == 1).unique()
    known = names.unique(["hi", "lo"])
    return needed.join(known, on=["hi", "lo"]).select(SENT_NAME_SCHEMA.names()).sort("to")


def _search(group: Group, origins: Codes, starts: Codes, hi: Numbers, lo: Numbers) -> Reached:
    """From starts, sorted by their origins; `hi` and `lo` are the origins' hashes."""
    records, ways = group.records, np.diff(group.route_spans)[group.key]
    origin, node = search(group.targets, group.spans, records, records | (ways > 0), origins, starts)
    leaves = ways[node] > 0
    stays = records[node] & ~leaves
    ends = [hi[origin[stays]], lo[origin[stays]], group.hi[node[stays]], group.lo[node[stays]]]
    found = pl.DataFrame(ends, schema=FOUND_SCHEMA)
    origin, node = origin[leaves], node[leaves]
    times, first = ways[node], group.route_spans[group.key[node]]
    # Each crossing once for every way: its first way, and how far on from there.
    further = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    to = group.route_to[np.repeat(first, times) + further]
    origin, node = np.repeat(origin, times), np.repeat(node, times)
    crossings = pl.DataFrame([to, hi[origin], lo[origin], group.hi[node], group.lo[node]], schema=CROSSING_SCHEMA)
    return Reached(found, crossings.sort("to"))
