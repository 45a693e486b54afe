"""The contraction of one run's edges between hashes, in this process: for runs that fit in its memory."""

import numpy as np
import polars as pl

from provenance_store.reduction.contract import contract, count_unmade
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.schemas import GRAPH_SCHEMA


def contract_hashed(edges: pl.DataFrame, names: pl.DataFrame, *, names_records: bool) -> tuple[pl.DataFrame, int]:
    """The reduced graph, sorted, of edges after HASHED_EDGE_SCHEMA and names after NAME_SCHEMA; and how many items
    nobody made."""
    half = edges.height
    # Names come last, so that each gets the number of the id it is of.
    hi, lo = (
        np.concatenate([edges[f"dependent_{part}"], edges[f"dependency_{part}"], names[part]]) for part in ("hi", "lo")
    )
    codes, firsts = number_hashes(hi, lo)
    numbered = edges["relation"].to_numpy(), codes[:half], codes[half : 2 * half], in_lake(lo[firsts])
    pairs = contract(*numbered, names_records=names_records)
    named = np.full(len(firsts), -1, np.int64)
    named[codes[2 * half :]] = np.arange(names.height)
    ends = {"output": named[pairs.output], "input": named[pairs.input]}
    if any((places < 0).any() for places in ends.values()):
        raise ValueError("an id has no name in the state")
    spelled = {end: names["id"].gather(places) for end, places in ends.items()}
    graph = pl.DataFrame(spelled, schema=GRAPH_SCHEMA).sort("output", "input")
    return graph, count_unmade(*numbered) if names_records else 0
