"""Answers a lineage question: breadth first, a level at a time with the frontier as a parameter.

Each record is expanded once, so the number of paths does not matter and cycles end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from neo4j import ManagedTransaction

from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord, CrossedRun, Direction
from provenance_store.graph.connection import cypher
from provenance_store.model.account import worst_verdict
from provenance_store.model.ids import is_version_id, version_id_of
from provenance_store.model.message import DECLARED

_FRONTIER = 5_000
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: from where, which way, how far, and what of it is kept."""

    start: tuple[str, ...]
    direction: Direction
    depth: int | None = None
    to: str | None = None
    # Backward: records that were made from nothing. Forward: records from which nothing was made.
    ends_only: bool = False

    def __post_init__(self) -> None:
        if not self.start:
            raise InputError("Give at least one record id to start from.")
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth {self.depth} reaches nothing: it counts steps, from 1 up.")


@dataclass(frozen=True, slots=True)
class Pins:
    """The graphs that were visible when the question was asked."""

    revisions: dict[str, tuple[int, int]]
    runs: dict[str, CrossedRun]
    # Runs that were declared: their edges are between whole versions, and hold for every record in them.
    declared: frozenset[str]


class Step(NamedTuple):
    """One edge as the search crosses it, from the near record to the far one."""

    near: str
    far: str
    dataset: str | None
    run: str


@dataclass(slots=True)
class Reached:
    """What a search has found so far."""

    datasets: dict[str, str | None] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    edges: set[tuple[str, str, str]] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


def answer(tx: ManagedTransaction, question: Question) -> Answer | None:
    """The answer; None where a run's graph was replaced meanwhile, so that the question has to be asked again."""
    before = _replacements(tx)
    # Known first, pinned second: a run that becomes visible in between is then followed; the other way round a
    # start that it alone speaks of would pass for one with no edges.
    _check_known(tx, question.start)
    pins = _pin(tx)
    reached = _search(tx, question, pins)
    # The old graph of a replaced run is removed while we read, and half of it is no answer.
    return _compose(question, pins, reached) if _replacements(tx) == before else None


def _replacements(tx: ManagedTransaction) -> int:
    return int(tx.run(cypher("replacements")).single(strict=True)["replacements"])


def _pin(tx: ManagedTransaction) -> Pins:
    revisions, runs, declared = {}, {}, set()
    for run, generation, revision, dic, verdict, marks in tx.run(cypher("pin")):
        revisions[run] = (generation, revision)
        runs[run] = CrossedRun(run, dic, verdict)
        if DECLARED in marks:
            declared.add(run)
    return Pins(revisions, runs, frozenset(declared))


def _check_known(tx: ManagedTransaction, ids: Sequence[str]) -> None:
    unknown = _unknown(tx, ids)
    if unknown:
        # A record that nothing captured is known through its version, where a job was declared that read or wrote it.
        versions = {version for record in unknown if (version := version_id_of(record))}
        unseen = set(_unknown(tx, sorted(versions)))
        unknown = [one for one in unknown if (version_id_of(one) or one) in unseen or version_id_of(one) is None]
    if unknown:
        named = ", ".join(unknown[:_NAMED])
        more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
        raise UnknownRecordError(
            f"The lake graph has never seen {named}{more}: check the id, and whether the run that wrote or read it has "
            "been reduced and merged."
        )


def _unknown(tx: ManagedTransaction, ids: Sequence[str]) -> list[str]:
    return [str(row["id"]) for part in _parts(ids) for row in tx.run(cypher("unknown"), ids=part)]


def _search(tx: ManagedTransaction, question: Question, pins: Pins) -> Reached:
    reached = Reached(depths=dict.fromkeys(question.start, 0))
    frontier: list[str] = list(reached.depths)
    level = 0
    while frontier and (question.depth is None or level < question.depth):
        level += 1
        following: list[str] = []
        for near, far, dataset, run in _steps(tx, question.direction, frontier, pins):
            reached.edges.add((near, far, run))
            reached.inner.add(near)
            if far not in reached.depths:
                reached.depths[far] = level
                reached.datasets[far] = dataset
                following.append(far)
        frontier = following
    if frontier and question.ends_only:
        # The limit stopped here: one look further tells which of these are ends.
        reached.inner.update(step.near for step in _steps(tx, question.direction, frontier, pins))
    return reached


def _steps(tx: ManagedTransaction, direction: Direction, frontier: Sequence[str], pins: Pins) -> Iterator[Step]:
    yield from _follow(tx, f"step_{direction}", frontier, pins)
    if pins.declared:
        yield from _steps_of_versions(tx, direction, frontier, pins)


def _steps_of_versions(
    tx: ManagedTransaction, direction: Direction, frontier: Sequence[str], pins: Pins
) -> Iterator[Step]:
    """What declared jobs add: a record goes where its version goes, and a version goes where its records go."""
    members: dict[str, list[str]] = {}
    for record in frontier:
        if version := version_id_of(record):
            members.setdefault(version, []).append(record)
    for step in _follow(tx, f"step_{direction}", list(members), pins):
        if step.run in pins.declared:
            yield from (step._replace(near=record) for record in members[step.near])
    versions = [one for one in frontier if is_version_id(one)]
    yield from _follow(tx, f"step_{direction}_within", versions, pins)


def _follow(tx: ManagedTransaction, query: str, frontier: Sequence[str], pins: Pins) -> Iterator[Step]:
    for part in _parts(frontier):
        for near, far, dataset, run, generation, revision in tx.run(cypher(query), frontier=part):
            if pins.revisions.get(run) == (generation, revision):
                yield Step(near, far, dataset, run)


def _compose(question: Question, pins: Pins, reached: Reached) -> Answer:
    records = [
        AnsweredRecord(record, dataset, reached.depths[record])
        for record, dataset in reached.datasets.items()
        if (question.to is None or dataset == question.to) and not (question.ends_only and record in reached.inner)
    ]
    crossed = sorted(pins.runs[run] for run in {run for _, _, run in reached.edges})
    edges = reached.edges
    if question.to is not None or question.ends_only:
        edges = _leading_to({record.id for record in records}, edges)
    backward = question.direction == "backward"
    return Answer(
        start=list(question.start),
        direction=question.direction,
        verdict=worst_verdict(run.verdict for run in crossed),
        records=sorted(records, key=lambda record: (record.depth, record.id)),
        edges=sorted(
            AnsweredEdge(near, far, run) if backward else AnsweredEdge(far, near, run) for near, far, run in edges
        ),
        runs=crossed,
    )


def _leading_to(kept: set[str], edges: Iterable[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """The edges along which a kept record is reached: those whose far end is one, or leads to one."""
    arriving: dict[str, list[tuple[str, str, str]]] = {}
    for edge in edges:
        arriving.setdefault(edge[1], []).append(edge)
    leading: set[tuple[str, str, str]] = set()
    seen, waiting = set(kept), list(kept)
    while waiting:
        for edge in arriving.get(waiting.pop(), ()):
            leading.add(edge)
            if edge[0] not in seen:
                seen.add(edge[0])
                waiting.append(edge[0])
    return leading


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(ids), _FRONTIER):
        yield list(ids[first : first + _FRONTIER])
