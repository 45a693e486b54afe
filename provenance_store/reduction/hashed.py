"""Tables of edges between hashes: numbered, contracted in this process where they fit in its memory, and spelled."""

from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.contract import Pairs, contract, count_unmade
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.native import Codes, Numbers
from provenance_store.reduction.schemas import GRAPH_SCHEMA


def contract_hashed(edges: pl.DataFrame, names: pl.DataFrame, *, names_records: bool) -> tuple[pl.DataFrame, int]:
    """The reduced graph, sorted, of edges after HASHED_EDGE_SCHEMA and names after NAME_SCHEMA; and how many items
    nobody made."""
    # Names come last, so that each gets the number of the id it is of.
    _, lo, (dependent, dependency, own) = number_columns((edges, "dependent_"), (edges, "dependency_"), (names, ""))
    numbered = edges["relation"].to_numpy(), dependent, dependency, in_lake(lo)
    pairs = contract(*numbered, names_records=names_records)
    graph = spell(pairs, _name(own, len(lo)), names["id"])
    return graph, count_unmade(*numbered) if names_records else 0


def spell_hashed(pairs: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The graph, sorted and each dependency once, of pairs of hashes (output, input) and names after NAME_SCHEMA."""
    _, lo, (output, given, own) = number_columns((pairs, "output_"), (pairs, "input_"), (names, ""))
    return spell(Pairs(output, given), _name(own, len(lo)), names["id"])


def _name(own: Codes, ids: int) -> Numbers:
    """Which name is of which number, or -1, where `own` are the numbers of the names."""
    named = np.full(ids, -1, np.int64)
    named[own] = np.arange(len(own))
    return named


def spell(pairs: Pairs, named: Numbers, texts: pl.Series) -> pl.DataFrame:
    """The pairs as texts, each once, where `named` tells which text is of which number.

    They are sorted by their inputs, of which a graph has the most: who merges it meets each of them once.
    """
    written = np.unique(np.concatenate(pairs))
    if (named[written] < 0).any():
        raise ValueError("an id has no name in the state")
    own = texts.gather(named[written])
    order = own.arg_sort().to_numpy()
    rank = np.empty(len(named), np.int64)
    rank[written[order]] = np.arange(len(order))
    keys = np.sort((rank[pairs.input] << 32) | rank[pairs.output])
    keys = keys[np.diff(keys, prepend=-1) > 0]
    own = own.gather(order)
    return pl.DataFrame({"output": own.gather(keys & 0xFFFFFFFF), "input": own.gather(keys >> 32)}, schema=GRAPH_SCHEMA)


class Numbered(NamedTuple):
    """Hashes that were numbered together: those of each number, and of each column its numbers."""

    hi: Numbers
    lo: Numbers
    columns: list[Codes]


def number_columns(*columns: tuple[pl.DataFrame, str]) -> Numbered:
    """Number the hashes in columns of tables, each given by what its two halves are called before `hi` and `lo`."""
    hi, lo = (np.concatenate([table[prefix + half] for table, prefix in columns]) for half in ("hi", "lo"))
    codes, firsts = number_hashes(hi, lo)
    bounds = np.cumsum([table.height for table, _ in columns])[:-1]
    return Numbered(hi[firsts], lo[firsts], np.split(codes, bounds))
