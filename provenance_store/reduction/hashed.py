"""The contraction of one run's edges between hashes, in this process: for runs that fit in its memory."""

import numpy as np
import polars as pl

from provenance_store.reduction.contract import contract
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.schemas import GRAPH_SCHEMA


def contract_hashed(edges: pl.DataFrame, names: pl.DataFrame, *, names_records: bool) -> pl.DataFrame:
    """The reduced graph, sorted, of edges after HASHED_EDGE_SCHEMA and names after NAME_SCHEMA."""
    half = edges.height
    # Names come last, so that each gets the number of the id it is of.
    hi, lo = (
        np.concatenate([edges[f"dependent_{part}"], edges[f"dependency_{part}"], names[part]]) for part in ("hi", "lo")
    )
    codes, firsts = number_hashes(hi, lo)
    pairs = contract(
        edges["relation"].to_numpy(),
        codes[:half],
        codes[half : 2 * half],
        in_lake(lo[firsts]),
        names_records=names_records,
    )
    named = np.full(len(firsts), -1, np.int64)
    named[codes[2 * half :]] = np.arange(names.height)
    ends = {"output": named[pairs.output], "input": named[pairs.input]}
    if any((places < 0).any() for places in ends.values()):
        raise ValueError("an id has no name in the state")
    spelled = {end: names["id"].gather(places) for end, places in ends.items()}
    return pl.DataFrame(spelled, schema=GRAPH_SCHEMA).sort("output", "input")
