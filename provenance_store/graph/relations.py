"""Questions about several records: does one depend on another, what have they in common, what comes from them alone."""

from typing import Any

import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import InputError
from provenance_store.graph.columns import NONE, Edges, Numbers, Seen, leading_to, levels_from, shortest_path
from provenance_store.graph.search import Search, Starts
from provenance_store.graph.snapshot import Snapshot
from provenance_store.graph.trace import Found, Question, Reader, Trace
from provenance_store.streams.links import StreamLinks


class Paths(Trace):
    """All ways from an output back to an input, as the graph of their records and edges, and one of the shortest."""

    def __init__(self, reader: Reader, question: Question, source: str, found: Found, path: Numbers) -> None:
        super().__init__(reader, question, found)
        self.source = source
        self._path = path

    @property
    def depends(self) -> bool:
        """Whether there is any way."""
        return len(self._path) > 0

    def shortest(self) -> list[str]:
        """The ids along one of the shortest ways, the output first; empty where there is none."""
        return [name.id for name in self._read(self._starts.names, self._path)]

    def _facts(self) -> dict[str, Any]:
        return {"source": self.source, "depends": self.depends, "shortest": self.shortest(), **super()._facts()}


def find_paths(reader: Reader, question: Question, source: str) -> Paths:
    """The ways from the question's one start back to `source`."""
    (output,) = question.start
    if output == source:
        raise InputError(f"Give two records: both are {source}.")
    return Paths(reader, question, source, *reader.read(lambda tx: _between(tx, question, source, reader.streams)))


def find_common(reader: Reader, question: Question) -> Trace:
    """What all starts were made from; a record's depth is counted from the start that is furthest from it."""
    if len(question.start) < 2:  # noqa: PLR2004 - in common is what at least two have
        raise InputError("Give at least two records, to see what they have in common.")
    return Trace(reader, question, reader.read(lambda tx: _common(tx, question, reader.streams)))


def find_only_from(reader: Reader, question: Question) -> Trace:
    """What was made from the starts and from nothing else: without them it would be left without a source."""
    return Trace(reader, question, reader.read(lambda tx: _only_from(tx, question, reader.streams)))


def _between(tx: ManagedTransaction, question: Question, source: str, streams: StreamLinks) -> tuple[Found, Numbers]:
    snapshot = Snapshot(tx, question.period)
    starts = Starts(tx, snapshot, [*question.start, source])
    back = Search(snapshot, starts, "backward", streams, starts.numbers[:1])
    forth = Search(snapshot, starts, "forward", streams, starts.numbers[1:])
    # Every way lies in what either search finds in the end, so the one that ends first is enough; the nearer to its end
    # is likely the one with the smaller frontier.
    while not (back.is_over or forth.is_over):
        min(back, forth, key=lambda search: len(search.levels[-1])).advance(tx)
    begin, ends = (starts.numbers_of(tx, snapshot, at) for at in (0, 1))
    # Two records of one version do not depend on each other by being in it.
    begin, ends = np.setdiff1d(begin, ends), np.setdiff1d(ends, begin)
    search, goal = (back, ends) if back.is_over else (forth, begin)
    found = search.edges()
    edges = found.select(leading_to(goal, found))
    if not back.is_over:
        edges = Edges(edges.far, edges.near, edges.run)
    snapshot.check(tx)
    levels = levels_from(begin, edges)[1:]
    return Found(snapshot, starts, levels, edges, search.crossed(found)), shortest_path(begin, ends, edges)


def _common(tx: ManagedTransaction, question: Question, streams: StreamLinks) -> Found:
    snapshot = Snapshot(tx, question.period)
    starts = Starts(tx, snapshot, question.start)
    searches = [
        Search(snapshot, starts, "backward", streams, starts.numbers[at : at + 1]) for at in range(len(starts.ids))
    ]
    for search in searches:
        search.run_to_end(tx, question.depth)
    snapshot.check(tx)
    common, depths = searches[0].reached()
    for search in searches[1:]:
        numbers, others = search.reached()
        common, here, there = np.intersect1d(common, numbers, assume_unique=True, return_indices=True)
        depths = np.maximum(depths[here], others[there])
    edges = Edges.concat([search.edges() for search in searches])
    levels = [common[depths == depth] for depth in range(1, depths.max(initial=0) + 1)]
    crossed = sorted({run for search in searches for run in search.crossed(search.edges())})
    return Found(snapshot, starts, levels, edges.select(leading_to(common, edges)), crossed)


def _only_from(tx: ManagedTransaction, question: Question, streams: StreamLinks) -> Found:
    snapshot = Snapshot(tx, question.period)
    starts = Starts(tx, snapshot, question.start)
    search = Search(snapshot, starts, "forward", streams)
    search.run_to_end(tx)
    edges = search.edges()
    made = np.concatenate([NONE, *search.levels[1:]])
    inside = Seen()
    inside.add(np.concatenate([starts.numbers, made]))
    # What has an input from elsewhere stays, and so does what was made from that, but not by way of a start.
    looked = Edges.concat([part.select(~inside.holds(part.far)) for part in search.steps(tx, "backward", made)])
    stays = Seen()
    for level in levels_from(looked.near, edges.select(~np.isin(edges.near, starts.numbers))):
        stays.add(level)
    snapshot.check(tx)
    levels = [level[~stays.holds(level)] for level in search.levels[1:]]
    kept = np.concatenate([NONE, *levels])
    crossed = search.crossed(Edges.concat([edges, looked]))
    return Found(snapshot, starts, levels, edges.select(leading_to(kept, edges)), crossed)
