"""The contraction of one run's edges between hashes, in this process: for runs that fit in its memory."""

import numpy as np
import polars as pl

from provenance_store.reduction.contract import Pairs, contract, count_unmade
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.native import Numbers
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
    return _spell(pairs, named, names["id"]), count_unmade(*numbered) if names_records else 0


def _spell(pairs: Pairs, named: Numbers, texts: pl.Series) -> pl.DataFrame:
    """The pairs as texts, sorted; what is sorted as text is each id, once."""
    written = np.unique(np.concatenate(pairs))
    if (named[written] < 0).any():
        raise ValueError("an id has no name in the state")
    own = texts.gather(named[written])
    order = own.arg_sort().to_numpy()
    rank = np.empty(len(named), np.int64)
    rank[written[order]] = np.arange(len(order))
    keys = np.sort((rank[pairs.output] << 32) | rank[pairs.input])
    own = own.gather(order)
    return pl.DataFrame({"output": own.gather(keys >> 32), "input": own.gather(keys & 0xFFFFFFFF)}, schema=GRAPH_SCHEMA)
