"""The global contraction by Spark joins: the library's `contract` over edges between hashes, spread over the workers.

No step sees all edges in one place. Every round's result is written to disk and read from there, so neither memory nor
plans grow with the run, and a lost worker costs a round.
"""

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.reduction.schemas import GENERATED, USED

# From this round on it is remembered what was reached, so that a cycle ends; few chains of functions are longer.
_PATIENCE = 4

# Writes a frame and gives it back as read from there.
Spool: TypeAlias = Callable[[DataFrame], DataFrame]

_LINK = ("from_hi", "from_lo", "to_hi", "to_lo")
_PAIR = ("output_hi", "output_lo", "node_hi", "node_lo")


def contract(edges: DataFrame, spool: Spool, *, names_records: bool, misnamed: bool) -> DataFrame:
    """Edges after HASHED_EDGE_SCHEMA to pairs (output_hi, output_lo, input_hi, input_lo), some more than once.

    `misnamed` tells whether an activity may be in the lake's namespace.
    """
    if names_records and not misnamed:
        links = _mark_records(edges, misnamed=False)
    else:  # marked by joins, which every round would do again
        links = spool(_mark_records(edges, misnamed=True) if names_records else _mark_sinks_and_sources(edges))
    onward = links.filter(~F.col("is_output")).select(*_LINK, "is_input")
    begin = links.filter("is_output").select(
        F.col("from_hi").alias("output_hi"),
        F.col("from_lo").alias("output_lo"),
        F.col("to_hi").alias("node_hi"),
        F.col("to_lo").alias("node_lo"),
        F.col("is_input").alias("ends"),
    )
    found = [begin.filter("ends")]
    frontier = spool(begin.filter(~F.col("ends")).distinct())
    seen: DataFrame | None = None
    rounds = 0
    while not frontier.isEmpty():
        rounds += 1
        joined = frontier.join(onward, (F.col("node_hi") == F.col("from_hi")) & (F.col("node_lo") == F.col("from_lo")))
        reached = joined.select(
            "output_hi",
            "output_lo",
            F.col("to_hi").alias("node_hi"),
            F.col("to_lo").alias("node_lo"),
            F.col("is_input").alias("ends"),
        ).distinct()
        if seen is not None:
            reached = reached.join(seen, list(_PAIR), "left_anti")
        reached = spool(reached)
        found.append(reached.filter("ends"))
        frontier = reached.filter(~F.col("ends"))
        if rounds >= _PATIENCE:
            seen = frontier.select(*_PAIR) if seen is None else seen.union(frontier.select(*_PAIR))
    pairs = found[0]
    for more in found[1:]:
        pairs = pairs.union(more)
    return pairs.select(
        "output_hi", "output_lo", F.col("node_hi").alias("input_hi"), F.col("node_lo").alias("input_lo")
    )


def spell(pairs: DataFrame, names: DataFrame) -> DataFrame:
    """The graph (output, input), each dependency once, of pairs of hashes and names after NAME_SCHEMA."""
    once = names.select("hi", "lo", "id").dropDuplicates(["hi", "lo"])
    spelled = pairs.distinct()
    for end in ("output", "input"):
        named = once.select(F.col("hi").alias(f"{end}_hi"), F.col("lo").alias(f"{end}_lo"), F.col("id").alias(end))
        # A dependency whose name is lost must not be lost with it: it fails the job instead.
        spelled = spelled.join(named, [f"{end}_hi", f"{end}_lo"], "left")
    told = [
        F.coalesce(F.col(end), F.raise_error(F.lit("an id has no name in the state")).cast("string")).alias(end)
        for end in ("output", "input")
    ]
    return spelled.select(*told)


def _links(edges: DataFrame) -> DataFrame:
    return edges.select(
        "relation",
        F.col("dependent_hi").alias("from_hi"),
        F.col("dependent_lo").alias("from_lo"),
        F.col("dependency_hi").alias("to_hi"),
        F.col("dependency_lo").alias("to_lo"),
    )


def _in_lake(lower: str) -> Column:
    return F.col(lower).bitwiseAND(F.lit(1)) == 1


def _mark_records(edges: DataFrame, *, misnamed: bool) -> DataFrame:
    """The links, each with whether it begins at an output and whether it ends at an input."""
    links = _links(edges).withColumns({"is_output": _in_lake("from_lo"), "is_input": _in_lake("to_lo")})
    if not misnamed:
        return links
    activities = _activities(links).filter(_in_lake("lo")).distinct()
    links = _with_flag(links, activities, "from", "not_output")
    links = _with_flag(links, activities, "to", "not_input")
    return links.withColumns(
        {
            "is_output": F.col("is_output") & ~F.col("not_output"),
            "is_input": F.col("is_input") & ~F.col("not_input"),
        }
    )


def _mark_sinks_and_sources(edges: DataFrame) -> DataFrame:
    links = _links(edges)
    activities = _activities(links).distinct()
    depended_on, depending = _ends(links, "to").distinct(), _ends(links, "from").distinct()
    idle = activities.join(depending, ["hi", "lo"], "left_anti")
    # Being generated by an execution that used nothing is no dependency.
    made = _with_flag(links, idle, "to", "from_nothing").filter(~F.col("from_nothing"))
    not_source = _ends(made, "from").union(activities).distinct()
    not_sink = depended_on.union(activities).distinct()
    marked = _with_flag(links, not_sink, "from", "not_output")
    marked = _with_flag(marked, not_source, "to", "not_input")
    return marked.withColumns({"is_output": ~F.col("not_output"), "is_input": ~F.col("not_input")})


def _activities(links: DataFrame) -> DataFrame:
    users = _ends(links.filter(F.col("relation") == USED), "from")
    return users.union(_ends(links.filter(F.col("relation") == GENERATED), "to"))


def _ends(links: DataFrame, end: str) -> DataFrame:
    return links.select(F.col(f"{end}_hi").alias("hi"), F.col(f"{end}_lo").alias("lo"))


def _with_flag(links: DataFrame, nodes: DataFrame, end: str, flag: str) -> DataFrame:
    """The links with a column that tells whether that end is among the nodes (hi, lo)."""
    marked = nodes.select(F.col("hi").alias(f"{end}_hi"), F.col("lo").alias(f"{end}_lo"), F.lit(True).alias(flag))
    return links.join(marked, [f"{end}_hi", f"{end}_lo"], "left").withColumn(flag, F.coalesce(flag, F.lit(False)))
