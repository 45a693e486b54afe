"""Contraction as pure functions on columns: edges between records, items and executions to (output, input).

What is kept, as DESIGN.md says, and what that means where it leaves a choice:

- Of a stream that names an entity of the lake, the entities in the lake's namespace are kept and paths are cut there.
  An output depends on an input where a path of one edge or more leads from it to there through nothing kept; so a
  record that is told to depend on itself keeps that edge.
- Of any other stream, its sinks and sources are kept. A sink is an entity that nothing used, derived from or holds
  as a member: what an execution used to make nothing is a dead end, not an output. A source is an entity made from
  no entity: one that an execution generated without using anything is where data begins, so it is an input.
- An activity is never an output or an input, also where its id is in the lake's namespace.
"""

import polars as pl

from provenance_store.model.ids import LAKE_NAMESPACE
from provenance_store.reduction.documents import DERIVED, EDGE_SCHEMA, GENERATED, MEMBER, USED

GRAPH_SCHEMA = {"output": pl.String, "input": pl.String}


def contract_locally(edges: pl.DataFrame) -> pl.DataFrame:
    """Contract what one message shows to be safe; the columns are EDGE_SCHEMA's, before and after.

    The contract promises that a message holds whole executions, so an activity can go as soon as its message is read:
    each of its outputs is derived from each of its inputs. It stays where that would be more edges than it has, where
    its id also stands for an entity, and where it is in the lake's namespace. An execution without inputs leaves
    nothing; one without outputs leaves only what it used of things that are not in the lake, because being used is
    what tells them from sinks. Contracting afterwards gives the same as contracting at once.
    """
    relation, key = pl.col("relation"), ["message", "activity"]
    used = edges.filter(relation == USED).select("message", activity="dependent", entity="dependency")
    made = edges.filter(relation == GENERATED).select("message", activity="dependency", entity="dependent")
    executions = _executions(used, made, _entities(edges))
    used = used.join(executions, on=key)
    made = made.join(executions, on=key)
    derived = used.filter("goes").join(made.filter("goes"), on="execution", suffix="_made")
    # Of what goes without an output, the things outside the lake are still to be known as used.
    used = used.filter(~pl.col("goes") | (pl.col("ended") & ~_in_lake("entity")))
    parts = [
        edges.filter(relation.is_in([DERIVED, MEMBER])),
        _as_edges(derived, DERIVED, dependent="entity_made", dependency="entity"),
        _as_edges(used, USED, dependent="activity", dependency="entity"),
        _as_edges(made.filter(~pl.col("goes")), GENERATED, dependent="entity", dependency="activity"),
    ]
    return pl.concat(parts).unique()


def _executions(used: pl.DataFrame, made: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Each message's executions, numbered, with whether they go and whether they ended without an output."""
    key, n, m = ["message", "activity"], pl.col("n"), pl.col("m")
    told = pl.concat([used.select(*key, n=1, m=0), made.select(*key, n=0, m=1)]).group_by(key).agg(n.sum(), m.sum())
    both = entities.rename({"entity": "activity"}).join(told.select(key), on=key, how="semi").unique()
    return (
        told.join(both.with_columns(clashes=True), on=key, how="left")
        .with_row_index("execution")
        .select(
            *key,
            "execution",
            goes=~_in_lake("activity") & (n * m <= n + m) & pl.col("clashes").is_null(),
            ended=m == 0,
        )
    )


def contract(edges: pl.DataFrame, *, names_records: bool) -> pl.DataFrame:
    """The reduced graph of one run's edges, as the columns of GRAPH_SCHEMA with expanded ids, in no order.

    `names_records` tells whether any entity of the run was in the lake: local contraction may have left none.
    """
    nodes = pl.concat([edges["dependent"], edges["dependency"]]).unique().alias("id").to_frame().with_row_index("node")
    coded = (
        edges.lazy()
        .join(nodes.lazy().rename({"id": "dependent", "node": "from"}), on="dependent")
        .join(nodes.lazy().rename({"id": "dependency", "node": "to"}), on="dependency")
        .select("relation", "from", "to")
        .collect()
    )
    activities = pl.concat(
        [
            coded.filter(pl.col("relation") == USED)["from"],
            coded.filter(pl.col("relation") == GENERATED)["to"],
        ]
    )
    is_entity = ~_flags(nodes.height, activities)
    links = coded.select("from", "to").unique().sort("from")
    if names_records:
        outputs = inputs = is_entity & nodes["id"].str.starts_with(LAKE_NAMESPACE)
    else:
        outputs, inputs = _sinks_and_sources(links, is_entity)
    reached = _reach(links, outputs, inputs)
    return reached.select(
        output=nodes["id"].gather(reached["output"]).cast(pl.String),
        input=nodes["id"].gather(reached["node"]).cast(pl.String),
    )


def _sinks_and_sources(links: pl.DataFrame, is_entity: pl.Series) -> tuple[pl.Series, pl.Series]:
    depends = _flags(len(is_entity), links["from"])
    is_depended_on = _flags(len(is_entity), links["to"])
    # Being generated by an execution that used nothing is no dependency.
    real = links.filter(is_entity.gather(links["to"]) | depends.gather(links["to"]))
    return is_entity & ~is_depended_on, is_entity & ~_flags(len(is_entity), real["from"])


def _reach(links: pl.DataFrame, outputs: pl.Series, inputs: pl.Series) -> pl.DataFrame:
    """Every (output, node) with `node` an input on a path from the output that crosses no other input.

    Semi-naive: each round follows only the pairs that the round before found first, over links sorted by where they
    begin, so that a round costs what it follows and a long chain or a cycle costs no more than its length.
    """
    spans = _spans(links, len(outputs))
    targets = links["to"]
    seen = _Seen()
    frontier = seen.keep_new(links.filter(outputs.gather(links["from"])).rename({"from": "output", "to": "node"}))
    found = [frontier.clear()]
    while frontier.height:
        ended = inputs.gather(frontier["node"])
        found.append(frontier.filter(ended))
        open_ends = frontier.filter(~ended)
        reach = spans[open_ends["node"]]
        places = (
            open_ends.select("output", place=pl.int_ranges(reach["start"], reach["end"], dtype=pl.Int64))
            .filter(reach["end"] > reach["start"])
            .explode("place")
        )
        frontier = seen.keep_new(places.select("output", node=targets.gather(places["place"])))
    return pl.concat(found)


def _spans(links: pl.DataFrame, nodes: int) -> pl.DataFrame:
    """Where the links of each node stand, as [start, end) of the links sorted by `from`."""
    numbers = pl.Series("node", range(nodes), dtype=pl.UInt32) if nodes else pl.Series("node", [], dtype=pl.UInt32)
    begin = links["from"]
    return pl.DataFrame(
        {
            "start": begin.search_sorted(numbers, side="left").cast(pl.Int64),
            "end": begin.search_sorted(numbers, side="right").cast(pl.Int64),
        }
    )


class _Seen:
    """The pairs met so far, as sorted runs that double in size: a look-up touches few, an addition moves little."""

    def __init__(self) -> None:
        self._runs: list[pl.Series] = []

    def keep_new(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """The pairs (output, node) not met before, each once; they are met from now on."""
        keys = pairs.select((pl.col("output").cast(pl.UInt64) * (1 << 32) + pl.col("node")).unique().sort()).to_series()
        for run in self._runs:
            at = run.search_sorted(keys)
            keys = keys.filter(run.gather(at.clip(0, len(run) - 1)) != keys)
        if len(keys):
            self._add(keys)
        return pl.DataFrame({"output": (keys // (1 << 32)).cast(pl.UInt32), "node": (keys % (1 << 32)).cast(pl.UInt32)})

    def _add(self, keys: pl.Series) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(keys):
            keys = pl.concat([self._runs.pop(), keys]).sort()
        self._runs.append(keys)


def _flags(length: int, nodes: pl.Series) -> pl.Series:
    """A column of `length` truth values, true at the given places."""
    return pl.zeros(length, dtype=pl.UInt8, eager=True).scatter(nodes.unique(), 1).cast(pl.Boolean)


def _entities(edges: pl.DataFrame) -> pl.DataFrame:
    """What stands for an entity in each message."""
    relation = pl.col("relation")
    return pl.concat(
        [
            edges.filter(relation != USED).select("message", entity="dependent"),
            edges.filter(relation != GENERATED).select("message", entity="dependency"),
        ]
    )


def _as_edges(pairs: pl.DataFrame, relation: int, *, dependent: str, dependency: str) -> pl.DataFrame:
    return pairs.select(
        "message", pl.lit(relation, dtype=pl.Int8).alias("relation"), dependent=dependent, dependency=dependency
    ).cast(EDGE_SCHEMA)


def _in_lake(column: str) -> pl.Expr:
    return pl.col(column).str.starts_with(LAKE_NAMESPACE)
