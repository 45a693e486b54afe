"""A whole source gathered in memory: the local edges of its batches, then the graph of each run in it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.contract import Pairs, contract
from provenance_store.reduction.documents import Edges
from provenance_store.reduction.intern import in_lake, number_hashes
from provenance_store.reduction.local import CUT, LocalReduction
from provenance_store.reduction.native import Flags, Numbers
from provenance_store.reduction.schemas import GRAPH_SCHEMA
from provenance_store.reduction.texts import Texts, gather_texts, sort_texts, to_strings


class Graph(NamedTuple):
    """A run's reduced graph (columns output and input, compact ids, sorted), and how many local edges it came from."""

    edges_local: int
    table: pl.DataFrame


class _Ids(NamedTuple):
    """Ids, the same one once for each batch it is in: hashes, and where the text begins and ends (0 where not kept)."""

    hi: Numbers
    lo: Numbers
    starts: Numbers
    stops: Numbers


class Whole:
    """The local edges of a source. Its messages are numbered 0, 1, 2… over all batches."""

    def __init__(self) -> None:
        self._edges: list[Edges] = []
        self._ids: list[_Ids] = []
        self._names: list[Texts] = []  # what the addresses point to
        self._message_count = 0
        self._id_count = 0

    def add(self, local: LocalReduction) -> None:
        """Add the next batch.

        A message that shows a record and counts makes its run one that names records, of which only records are
        written; one that does not count is never asked for. So only messages that show none need other ids' names.
        """
        columns, ids = local.columns, local.ids
        at_ends = np.zeros(len(ids.hi), np.bool_)
        at_ends[columns.dependent] = True
        at_ends[columns.dependency] = True
        place = np.cumsum(at_ends, dtype=np.int32) - np.int32(1)
        shift = np.int32(self._id_count)
        self._edges.append(
            Edges(
                columns.document + np.int32(self._message_count),
                columns.relation,
                place[columns.dependent] + shift,
                place[columns.dependency] + shift,
            )
        )
        kept = np.flatnonzero(at_ends)
        named = local._replace(settled=local.messages["lake"].to_numpy()).named()
        names = gather_texts(ids.starts[named] + CUT * ids.lake[named], ids.stops[named])
        starts, stops = np.zeros(len(kept), np.int64), np.zeros(len(kept), np.int64)
        starts[place[named]], stops[place[named]] = names.starts, names.stops
        self._ids.append(_Ids(ids.hi[kept], ids.lo[kept], starts, stops))
        self._names.append(names)
        self._message_count += len(local.messages)
        self._id_count += len(kept)

    def contract(self, judgements: Sequence[Judgement]) -> Iterator[Graph]:
        """The graph of each run that was judged."""
        if not judgements:
            return
        edges = Edges(*map(np.concatenate, zip(*self._edges, strict=True)))
        ids = _Ids(*map(np.concatenate, zip(*self._ids, strict=True)))
        self._edges, self._ids = [], []
        for judgement, chosen in zip(judgements, self._by_run(edges, judgements), strict=True):
            of_run = edges if chosen is None else _choose(edges, chosen)
            # Each run of many looks only at its own ids; a run alone at all there are.
            own = (of_run, ids) if len(judgements) == 1 else _own(of_run, ids)
            yield _contract_run(*own, names_records=judgement.names_records)

    def _by_run(self, edges: Edges, judgements: Sequence[Judgement]) -> Iterator[Flags | Numbers | None]:
        """Which edges count for each run; None for all of them."""
        run_of = np.full(self._message_count, -1, np.int64)
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


def _own(edges: Edges, ids: _Ids) -> tuple[Edges, _Ids]:
    """The edges with the ids at their ends and no others."""
    own, places = np.unique(np.concatenate([edges.dependent, edges.dependency]), return_inverse=True)
    dependent, dependency = np.split(places.astype(np.int32), 2)
    return edges._replace(dependent=dependent, dependency=dependency), _Ids(*(column[own] for column in ids))


def _contract_run(edges: Edges, ids: _Ids, *, names_records: bool) -> Graph:
    codes, firsts = number_hashes(ids.hi, ids.lo)
    lake = in_lake(ids.lo[firsts])
    pairs = contract(edges.relation, codes[edges.dependent], codes[edges.dependency], lake, names_records=names_records)
    starts, stops = np.zeros(len(firsts), np.int64), np.zeros(len(firsts), np.int64)
    named = np.flatnonzero(ids.stops)
    starts[codes[named]], stops[codes[named]] = ids.starts[named], ids.stops[named]
    return Graph(len(edges.document), _spell(pairs, starts, stops))


def _spell(pairs: Pairs, starts: Numbers, stops: Numbers) -> pl.DataFrame:
    """The pairs as texts, sorted; what is sorted as text is each id, once."""
    is_written = np.zeros(len(starts), np.bool_)
    is_written[pairs.output] = True
    is_written[pairs.input] = True
    written = np.flatnonzero(is_written)
    written = written[sort_texts(starts[written], stops[written])]
    rank = np.empty(len(starts), np.int64)
    rank[written] = np.arange(len(written))
    keys = np.sort((rank[pairs.output] << 32) | rank[pairs.input])
    names = to_strings(starts[written], stops[written])
    return pl.DataFrame(
        {"output": names.gather(keys >> 32), "input": names.gather(keys & 0xFFFFFFFF)}, schema=GRAPH_SCHEMA
    )
