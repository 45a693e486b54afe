"""The reduced graphs of a lake as tables: ids by number, and links between numbers the way a question goes.

Numbers are cheaper to join and to spool than ids, and unlike hashes no two ids share one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from provenance_store.graph.answer import Direction
from provenance_store.graph.reduced import ReducedGraph
from provenance_store.model.ids import version_id_of
from provenance_store.model.message import DECLARED
from spark_apps.spool import Spool

# As provenance_store.model.ids has them.
_IN_VERSION = r"^(lake:[^/#]+/[^/#]+)[/#]"
_VERSION = r"^lake:[^/#]+/[^/#]+$"
# Spark spells the scheme of a file's name in more than one way.
_SCHEME = "^[a-z0-9]+:/+"
_PATTERNS = frozenset("\\*?[]{},")


@dataclass(frozen=True)
class Lake:
    """Nodes are numbers of ids, and runs are places among the graphs, starts among the ids that were given."""

    nodes: DataFrame  # node, id
    links: DataFrame  # near, far, run; some more than once
    starts: DataFrame  # start, id


def read_lake(graphs: Sequence[ReducedGraph], direction: Direction, starts: Sequence[str], spool: Spool) -> Lake:
    """Every id its number, and all links between numbers; UnseenError where a start is in no graph."""
    edges = _read_edges(graphs, direction, spool)
    ids = edges.select("near").union(edges.select("far")).distinct().toDF("id")
    nodes = spool.keep(ids.select(F.monotonically_increasing_id().alias("node"), "id"), "nodes")
    given = spool.hand_over({"start": pa.array(range(len(starts)), pa.int32()), "id": starts}, "starts")
    unseen = {row["id"] for row in given.join(nodes, "id", "left_anti").collect()}
    if unseen:
        nodes = nodes.union(_known_through_versions([one for one in starts if one in unseen], nodes, spool))
    numbered = edges.join(nodes.toDF("near_node", "near"), "near").join(nodes.toDF("far_node", "far"), "far")
    links = numbered.select("near_node", "far_node", "run").toDF("near", "far", "run")
    if declared := [run for run, graph in enumerate(graphs) if DECLARED in graph.account.marks]:
        links = _across_versions(spool.keep(links, "links-told"), nodes, declared)
    return Lake(nodes, spool.keep(links, "links"), given)


class UnseenError(LookupError):
    """Starts that no graph speaks of, nor of the version that they are in."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} ids are in no graph")
        self.ids = ids


def _read_edges(graphs: Sequence[ReducedGraph], direction: Direction, spool: Spool) -> DataFrame:
    """All edges (near, far, run) with ids, the way a question goes."""
    runs = {str(file): run for run, graph in enumerate(graphs) for file in graph.files}
    edges = spool.spark.read.schema("output string, input string").parquet(*map(_literal, runs))
    near, far = ("output", "input") if direction == "backward" else ("input", "output")
    read = edges.select(
        _filled(near).alias("near"),
        _filled(far).alias("far"),
        F.regexp_replace("_metadata.file_path", _SCHEME, "/").alias("file"),
    )
    files = [re.sub(_SCHEME, "/", uri) for uri in edges.inputFiles()]
    numbers = pa.array([runs[unquote(file)] for file in files], pa.int32())
    run_of = spool.hand_over({"file": files, "run": numbers}, "files")
    # An edge of a file that no run is known of must not be lost: it fails the job instead.
    lost = F.raise_error(F.concat(F.lit("no run is known of "), F.col("file"))).cast("int")
    of_runs = read.join(F.broadcast(run_of), "file", "left")
    return of_runs.select("near", "far", F.coalesce(F.col("run"), lost).alias("run"))


def _known_through_versions(ids: Sequence[str], nodes: DataFrame, spool: Spool) -> DataFrame:
    """Nodes for starts that no edge speaks of, but edges speak of the versions that they are in."""
    versions = {one: version_id_of(one) for one in ids}
    asked = spool.hand_over({"id": sorted({one for one in versions.values() if one})}, "versions")
    known = {row["id"] for row in asked.join(nodes, "id", "left_semi").collect()}
    if unknown := [one for one, version in versions.items() if version not in known]:
        raise UnseenError(unknown)
    # Below the numbers of all others.
    return spool.hand_over({"node": pa.array(range(-len(ids), 0), pa.int64()), "id": ids}, "members")


def _across_versions(links: DataFrame, nodes: DataFrame, declared: Sequence[int]) -> DataFrame:
    """What declared jobs add: a record goes where its version goes, and a version goes where its records go."""
    members = nodes.select("node", _version("id").alias("version")).filter("version IS NOT NULL")
    versions = nodes.filter(F.col("id").rlike(_VERSION)).toDF("whole", "version")
    of_versions = links.filter(F.col("run").isin(list(declared))).join(versions, F.col("near") == F.col("whole"))
    of_members = links.join(members.toDF("near", "version"), "near")
    return links.union(of_versions.join(members, "version").select("node", "far", "run")).union(
        of_members.join(versions, "version").select("whole", "far", "run")
    )


def _version(name: str) -> Column:
    return F.nullif(F.regexp_extract(name, _IN_VERSION, 1), F.lit(""))


def _filled(name: str) -> Column:
    empty = F.raise_error(F.lit("a reduced graph holds an edge without an end")).cast("string")
    return F.coalesce(F.col(name), empty)


def _literal(file: str) -> str:
    """As Spark reads the path and no pattern."""
    return "".join(f"\\{one}" if one in _PATTERNS else one for one in file)
