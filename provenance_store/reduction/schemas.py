"""The tables of the reduction: what their columns are called and hold."""

import polars as pl

from provenance_store.model.document import RELATION_ENDS

# The relation of an edge is its place here; only the first two have an activity at one end.
RELATIONS = tuple(RELATION_ENDS)
USED, GENERATED, DERIVED, MEMBER = map(RELATIONS.index, ("used", "wasGeneratedBy", "wasDerivedFrom", "hadMember"))

MESSAGE_SCHEMA = pl.Schema(
    {
        "message": pl.Int64,  # which one: a number of the caller's choice
        "run": pl.String,  # null where the headers do not tell
        "dic": pl.String,
        "attempt": pl.String,  # null in a message without headers, or with unreadable ones
        "seq": pl.Int64,
        "kind": pl.String,
        "bytes": pl.Int64,
        "crc": pl.Int64,  # tells copies that differ apart, in whatever order they come
        "edges": pl.Int64,
        "lake": pl.Boolean,  # whether any entity in it is a record of the lake
        "reason": pl.String,  # why it cannot be read; null where it can
        "manifest": pl.Binary,
    }
)

# Edges between expanded ids, as they are told.
EDGE_SCHEMA = pl.Schema(
    {
        "message": pl.Int64,
        "relation": pl.Int8,
        "dependent": pl.String,
        "dependency": pl.String,
    }
)

# Edges between hashes of ids, as `intern` makes them: the lowest bit of `lo` tells whether the id is in the lake.
HASHED_EDGE_SCHEMA = pl.Schema(
    {
        "message": pl.Int64,
        "relation": pl.Int8,
        "dependent_hi": pl.Int64,
        "dependent_lo": pl.Int64,
        "dependency_hi": pl.Int64,
        "dependency_lo": pl.Int64,
    }
)

NAME_SCHEMA = pl.Schema(
    {
        "hi": pl.Int64,
        "lo": pl.Int64,
        "id": pl.String,  # as it is written in files: compact where it is in the lake
        "lake": pl.Boolean,
    }
)

# The reduced graph, compact ids.
GRAPH_SCHEMA = pl.Schema({"output": pl.String, "input": pl.String})
