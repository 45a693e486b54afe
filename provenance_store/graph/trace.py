"""The trace of a question: what is reachable, held as numbers, and told in pages.

The search comes first and whole, so verdict, runs and counts are known before the first record is read; then records
and edges are read a page at a time, and each page is checked to be of the same graph.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Protocol, TypeVar

import msgspec
import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import InputError
from provenance_store.graph.answer import (
    Answer,
    AnsweredEdge,
    AnsweredRecord,
    CrossedRun,
    Direction,
    Summary,
    count_datasets,
)
from provenance_store.graph.columns import NONE, Edges, Numbers, Seen, leading_to, levels_from
from provenance_store.graph.search import Search, Starts
from provenance_store.graph.snapshot import Period, Snapshot
from provenance_store.model.account import Verdict, worst_verdict
from provenance_store.streams.links import StreamLinks

PAGE = 5_000
T = TypeVar("T")


class Reader(Protocol):
    """Runs work in a read transaction; `Connection` is one."""

    @property
    def streams(self) -> StreamLinks:
        """Who knows which records stream runs made from which."""

    def read(self, work: Callable[[ManagedTransaction], T]) -> T:
        """What the work returns."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: from where, which way, how far, over which runs, and what of it is kept."""

    start: tuple[str, ...]
    direction: Direction
    depth: int | None = None
    to: str | None = None
    # Backward: records that were made from nothing. Forward: records from which nothing was made.
    ends_only: bool = False
    period: Period = field(default_factory=Period)
    # Whether stream queries are replayed where the keys of their events leave several possibilities.
    replay: bool = False

    def __post_init__(self) -> None:
        if not self.start:
            raise InputError("Give at least one record id to start from.")
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth {self.depth} reaches nothing: it counts steps, from 1 up.")


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the records that a trace reached; pages of one `moment` go together."""

    records: list[AnsweredRecord]
    edges: list[AnsweredEdge]
    moment: str


class Trace:
    """What a question reaches, and the worst verdict of the runs that the search crossed.

    `runs` holds those too whose records a filter left out, because a gap in any of them may have hidden a record.
    """

    def __init__(self, reader: Reader, question: Question, found: "Found") -> None:
        self.question = question
        self.runs = found.crossed
        self.verdict: Verdict = worst_verdict(run.verdict for run in self.runs)
        self._reader = reader
        self._snapshot = found.snapshot
        self._starts = found.starts
        self._records = np.concatenate([NONE, *found.levels])
        self._depths = np.repeat(np.arange(1, len(found.levels) + 1), [len(level) for level in found.levels])
        self._edges = found.edges
        self.accuracy = found.accuracy

    def __len__(self) -> int:
        return len(self._records)

    def summary(self) -> Summary:
        """What can be told before the details: how many records of which dataset."""
        counts: Counter[str | None] = Counter()
        for page in _pages(len(self)):
            datasets = self._read(self._starts.datasets, self._records[page])
            counts.update({dataset: len(numbers) for dataset, numbers in datasets.items()})
        return Summary(
            start=list(self.question.start),
            direction=self.question.direction,
            verdict=self.verdict,
            records=len(self),
            edges=len(self._edges),
            datasets=count_datasets(counts),
            runs=self.runs,
            accuracy=self.accuracy,
        )

    def records(self) -> Iterator[AnsweredRecord]:
        """The records, the nearest first."""
        for page in _pages(len(self)):
            names = self._read(self._starts.names, self._records[page])
            for name, depth in zip(names, self._depths[page].tolist(), strict=True):
                yield AnsweredRecord(name.id, name.dataset, depth)

    def edges(self) -> Iterator[AnsweredEdge]:
        """The dependencies that lead to the records."""
        for page in _pages(len(self._edges)):
            yield from self._named(self._edges.select(page))

    def page(self, first: int, length: int) -> Page:
        """So many records from a place on, the nearest first, and the edges that tie them to each other and to earlier.

        Every edge between two records of pages is on one of the two pages, so pages put together lack none.
        """
        here = self._records[first : first + length]
        until = np.concatenate([self._starts.numbers, self._records[: first + length]])
        near, far = self._edges.near, self._edges.far
        tied = (np.isin(far, here) & np.isin(near, until)) | (np.isin(near, here) & np.isin(far, until))
        names = self._read(self._starts.names, here)
        depths = self._depths[first : first + length].tolist()
        return Page(
            records=[AnsweredRecord(name.id, name.dataset, depth) for name, depth in zip(names, depths, strict=True)],
            edges=list(self._named(self._edges.select(tied))),
            moment=self._snapshot.moment,
        )

    def answer(self) -> Answer:
        """All of it at once, in the order of ids: for answers that fit in memory."""
        return Answer(
            start=list(self.question.start),
            direction=self.question.direction,
            verdict=self.verdict,
            records=sorted(self.records(), key=lambda record: (record.depth, record.id)),
            edges=sorted(self.edges()),
            runs=self.runs,
            accuracy=self.accuracy,
        )

    def write_json(self, file: IO[bytes]) -> None:
        """The answer as JSON, a page at a time: the contract's fields in its order."""
        file.write(b'{"start":' + msgspec.json.encode(list(self.question.start)))
        for name, value in self._facts().items():
            file.write(b"," + msgspec.json.encode(name) + b":" + msgspec.json.encode(value))
        for name, rows in (("records", self.records()), ("edges", self.edges())):
            file.write(f',"{name}":['.encode())
            for number, row in enumerate(rows):
                file.write((b"," if number else b"") + msgspec.json.encode(row))
            file.write(b"]")
        file.write(b',"runs":' + msgspec.json.encode(self.runs))
        if self.accuracy is not None:
            file.write(b',"accuracy":' + msgspec.json.encode(self.accuracy))
        file.write(b"}")

    def _named(self, edges: Edges) -> Iterator[AnsweredEdge]:
        ends = np.unique([edges.near, edges.far])
        names = dict(zip(ends.tolist(), self._read(self._starts.names, ends), strict=True))
        backward = self.question.direction == "backward"
        for near, far, run in zip(edges.near.tolist(), edges.far.tolist(), edges.run.tolist(), strict=True):
            output, source = (near, far) if backward else (far, near)
            evidence = self._snapshot.evidence[run]
            yield AnsweredEdge(names[output].id, names[source].id, self._snapshot.runs[run].run, *evidence)

    def _facts(self) -> dict[str, Any]:
        """What stands before the records in JSON."""
        return {"direction": self.question.direction, "verdict": self.verdict}

    def _read(self, read: Callable[[ManagedTransaction, Numbers], T], numbers: Numbers) -> T:
        def checked(tx: ManagedTransaction) -> T:
            found = read(tx, numbers)
            self._snapshot.check(tx)
            return found

        return self._reader.read(checked)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search leaves: records by level without the starts, edges, and the runs that it crossed."""

    snapshot: Snapshot
    starts: Starts
    levels: list[Numbers]
    edges: Edges
    crossed: list[CrossedRun]
    # The share of the records that exact edges alone lead to, where some edges are not.
    accuracy: float | None = None


def trace(reader: Reader, question: Question) -> Trace:
    """Search, and keep what the question asks for; OvertakenError where a run was replaced meanwhile."""
    return Trace(reader, question, reader.read(lambda tx: _find(tx, question, reader.streams)))


def _find(tx: ManagedTransaction, question: Question, streams: StreamLinks) -> Found:
    snapshot = Snapshot(tx, question.period)
    starts = Starts(tx, snapshot, question.start)
    search = Search(snapshot, starts, question.direction, streams.replaying(question.replay))
    search.run_to_end(tx, question.depth)
    levels, edges = search.levels[1:], search.edges()
    every = edges
    if question.to is not None or question.ends_only:
        kept = _kept(tx, question, starts, search, edges)
        levels = [level[np.isin(level, kept)] for level in levels]
        edges = edges.select(leading_to(kept, edges))
    snapshot.check(tx)
    accuracy = _share_of_exact(snapshot, starts, levels, every)
    return Found(snapshot, starts, levels, edges, search.crossed(every), accuracy)


def _share_of_exact(snapshot: Snapshot, starts: Starts, levels: list[Numbers], edges: Edges) -> float | None:
    exact = np.array([evidence.exact for evidence in snapshot.evidence], np.bool_)
    records = np.concatenate([NONE, *levels])
    if exact[edges.run].all() or not len(records):
        return None
    sure = np.concatenate([NONE, *levels_from(starts.numbers, edges.select(exact[edges.run]))])
    return float(np.isin(records, sure).mean())


def _kept(tx: ManagedTransaction, question: Question, starts: Starts, search: Search, edges: Edges) -> Numbers:
    kept = np.concatenate([NONE, *search.levels[1:]])
    if question.ends_only:
        inner = Seen()
        inner.add(edges.near)
        # Where the limit stopped, one look further tells which records are ends.
        for part in search.steps(tx, question.direction, search.levels[-1]):
            inner.add(part.near)
        kept = kept[~inner.holds(kept)]
    if question.to is not None:
        kept = starts.datasets(tx, kept).get(question.to, NONE)
    return kept


def _pages(length: int) -> Iterator[slice]:
    for first in range(0, length, PAGE):
        yield slice(first, first + PAGE)
