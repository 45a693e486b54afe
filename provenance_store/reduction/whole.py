"""A whole source gathered in memory: the local edges of its batches, then the graph of each run in it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.contract import Pairs, contract, count_unmade
from provenance_store.reduction.documents import Edges
from provenance_store.reduction.intern import Ids, in_lake, number_hashes
from provenance_store.reduction.local import LocalReduction, written_from
from provenance_store.reduction.native import Flags, Numbers
from provenance_store.reduction.pieces import join_edges, join_ids
from provenance_store.reduction.schemas import GRAPH_SCHEMA
from provenance_store.reduction.texts import sort_texts, to_strings


class Graph(NamedTuple):
    """A run's reduced graph (columns output and input, compact ids, sorted), how many local edges it came from, and how
    many items that nobody made."""

    edges_local: int
    table: pl.DataFrame
    unmade: int


class Whole:
    """The local edges of a source. Its messages are numbered 0, 1, 2… over all batches."""

    def __init__(self) -> None:
        self._batches: list[LocalReduction] = []

    def add(self, local: LocalReduction) -> None:
        """Add the next batch."""
        self._batches.append(local)

    def contract(self, judgements: Sequence[Judgement]) -> Iterator[Graph]:
        """The graph of each run that was judged."""
        if not judgements:
            return
        messages = np.cumsum([0, *(len(batch.messages) for batch in self._batches)]).astype(np.int32)
        firsts = np.cumsum([0, *(len(batch.ids.hi) for batch in self._batches)]).astype(np.int32)
        edges = join_edges([batch.columns for batch in self._batches], messages, firsts)
        ids = join_ids([batch.ids for batch in self._batches])
        self._batches = []
        for judgement, chosen in zip(judgements, _by_run(edges, int(messages[-1]), judgements), strict=True):
            of_run = edges if chosen is None else _choose(edges, chosen)
            # Each run of many looks only at its own ids; a run alone at all there are.
            own = (of_run, ids) if len(judgements) == 1 else _own(of_run, ids)
            yield _contract_run(*own, names_records=judgement.names_records)


def _by_run(edges: Edges, messages: int, judgements: Sequence[Judgement]) -> Iterator[Flags | Numbers | None]:
    """Which edges count for each run; None for all of them."""
    run_of = np.full(messages, -1, np.int64)
    for number, judgement in enumerate(judgements):
        run_of[judgement.used["message"].to_numpy()] = number
    if len(judgements) == 1:
        counts = (run_of == 0)[edges.document]
        yield None if counts.all() else counts
        return
    runs = run_of[edges.document]
    order = np.argsort(runs, kind="stable")
    bounds = np.searchsorted(runs[order], np.arange(len(judgements) + 1))
    for begin, end in pairwise(bounds):
        yield order[begin:end]


def _choose(edges: Edges, chosen: Flags | Numbers) -> Edges:
    document, relation, dependent, dependency = edges
    return Edges(document[chosen], relation[chosen], dependent[chosen], dependency[chosen])


def _own(edges: Edges, ids: Ids) -> tuple[Edges, Ids]:
    """The edges with the ids at their ends and no others."""
    own, places = np.unique(np.concatenate([edges.dependent, edges.dependency]), return_inverse=True)
    dependent, dependency = np.split(places.astype(np.int32), 2)
    return edges._replace(dependent=dependent, dependency=dependency), Ids(
        ids.hi[own], ids.lo[own], ids.starts[own], ids.stops[own], ids.buffers
    )


def _contract_run(edges: Edges, ids: Ids, *, names_records: bool) -> Graph:
    codes, firsts = number_hashes(ids.hi, ids.lo)
    lake = in_lake(ids.lo[firsts])
    numbered = edges.relation, codes[edges.dependent], codes[edges.dependency], lake
    pairs = contract(*numbered, names_records=names_records)
    starts, stops = np.zeros(len(firsts), np.int64), np.zeros(len(firsts), np.int64)
    named = np.flatnonzero(ids.stops)
    starts[codes[named]], stops[codes[named]] = written_from(ids)[named], ids.stops[named]
    unmade = count_unmade(*numbered) if names_records else 0
    return Graph(len(edges.document), _spell(pairs, starts, stops), unmade)


def _spell(pairs: Pairs, starts: Numbers, stops: Numbers) -> pl.DataFrame:
    """The pairs as texts, sorted as `hashed.spell` has them; what is sorted as text is each id, once."""
    is_written = np.zeros(len(starts), np.bool_)
    is_written[pairs.output] = True
    is_written[pairs.input] = True
    written = np.flatnonzero(is_written)
    written = written[sort_texts(starts[written], stops[written])]
    rank = np.empty(len(starts), np.int64)
    rank[written] = np.arange(len(written))
    keys = np.sort((rank[pairs.input] << 32) | rank[pairs.output])
    names = to_strings(starts[written], stops[written])
    return pl.DataFrame(
        {"output": names.gather(keys & 0xFFFFFFFF), "input": names.gather(keys >> 32)}, schema=GRAPH_SCHEMA
    )
