"""Searches the lake graph breadth first, a level at a time with the frontier as a parameter.

Each record is expanded once, so the number of paths does not matter and cycles end. Records are the numbers of their
nodes; a start that has no node, because it is known through its version alone, gets a number below 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import UnknownRecordError
from provenance_store.graph.answer import Direction
from provenance_store.graph.columns import NONE, Edges, Numbers, Seen
from provenance_store.graph.connection import cypher
from provenance_store.graph.snapshot import OvertakenError, Snapshot
from provenance_store.model.ids import is_version_id, version_id_of

PART = 5_000
_NAMED = 5


class Name(NamedTuple):
    """What a number stands for."""

    id: str
    dataset: str | None


class Starts:
    """The records that a question begins at, all of them known."""

    def __init__(self, tx: ManagedTransaction, snapshot: Snapshot, ids: Sequence[str]) -> None:
        self.ids = list(ids)
        known = dict(_look_up(tx, snapshot, ids))
        self._check(tx, snapshot, [one for one in ids if not known[one][1]])
        numbers = [known[one][0] for one in ids]
        self.numbers: Numbers = np.array([-1 - at if n is None else n for at, n in enumerate(numbers)], np.int64)

    def _check(self, tx: ManagedTransaction, snapshot: Snapshot, unknown: list[str]) -> None:
        # A record that nothing captured is known through its version, where a job was declared that read or wrote it.
        versions = {version for one in unknown if (version := version_id_of(one))}
        known = {version for version, (_, is_known) in _look_up(tx, snapshot, sorted(versions)) if is_known}
        if unknown := [one for one in unknown if version_id_of(one) not in known]:
            # The run that speaks of them may just have been replaced.
            snapshot.check(tx)
            named = ", ".join(unknown[:_NAMED])
            more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
            raise UnknownRecordError(
                f"The lake graph has never seen {named}{more}: check the id, and whether the run that wrote or read it "
                "has been reduced and merged."
            )

    def numbers_of(self, tx: ManagedTransaction, snapshot: Snapshot, at: int) -> Numbers:
        """The numbers by which others meet a start: its own, and that of its version, which stands for it."""
        version = version_id_of(self.ids[at]) if snapshot.has_declared else None
        found = _look_up(tx, snapshot, [version] if version else [])
        return np.array([self.numbers[at], *(number for _, (number, _) in found if number is not None)], np.int64)

    def names(self, tx: ManagedTransaction, numbers: Numbers) -> list[Name]:
        """What numbers stand for, in their order."""
        found = iter(read_names(tx, numbers[numbers >= 0]))
        return [next(found) if number >= 0 else Name(self.ids[-1 - number], None) for number in numbers.tolist()]


class Search:
    """One search in one direction: `advance` takes it a level further."""

    def __init__(self, snapshot: Snapshot, starts: Starts, direction: Direction, begin: Numbers | None = None) -> None:
        self._snapshot = snapshot
        self._starts = starts
        self._direction = direction
        self._seen = Seen()
        self._edges: list[Edges] = []
        begin = starts.numbers if begin is None else begin
        self._seen.add(begin)
        self.levels: list[Numbers] = [np.unique(begin)]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to expand."""
        return not len(self.levels[-1])

    def run_to_end(self, tx: ManagedTransaction, depth: int | None = None) -> None:
        """Advance until nothing is left, or for so many steps."""
        while not self.is_over and (depth is None or len(self.levels) <= depth):
            self.advance(tx)

    def advance(self, tx: ManagedTransaction) -> None:
        """Expand the records that were reached last."""
        edges = list(self.steps(tx, self._direction, self.levels[-1]))
        self._edges += edges
        far = np.concatenate([NONE, *(part.far for part in edges)])
        self.levels.append(self._seen.add(far))

    def reached(self) -> tuple[Numbers, Numbers]:
        """The records without the starts, and the depth of each."""
        levels = self.levels[1:]
        depths = np.repeat(np.arange(1, len(levels) + 1), [len(level) for level in levels])
        return np.concatenate([NONE, *levels]), depths

    def edges(self) -> Edges:
        """All that were crossed, each once."""
        self._edges = [Edges.concat(self._edges)]
        return self._edges[0]

    def steps(self, tx: ManagedTransaction, direction: Direction, frontier: Numbers) -> Iterator[Edges]:
        """The edges that leave records in a direction."""
        query = f"step_{direction}"
        for part in _parts(frontier[frontier >= 0]):
            yield self._follow(tx, query, {"frontier": part.tolist()})
        if self._snapshot.has_declared:
            for part in _parts(frontier):
                yield from self._steps_of_versions(tx, query, part)

    def _steps_of_versions(self, tx: ManagedTransaction, query: str, frontier: Numbers) -> Iterator[Edges]:
        """What declared jobs add: a record goes where its version goes, and a version goes where its records go."""
        members: dict[str, list[int]] = {}
        whole: list[tuple[int, str]] = []
        for number, (name, _) in zip(frontier.tolist(), self._starts.names(tx, frontier), strict=True):
            if version := version_id_of(name):
                members.setdefault(version, []).append(number)
            elif is_version_id(name):
                whole.append((number, name))
        nodes = {
            number: version
            for version, (number, _) in _look_up(tx, self._snapshot, list(members))
            if number is not None
        }
        declared = self._follow(tx, query, {"frontier": list(nodes)}, declared_only=True)
        for near, far, run in zip(declared.near.tolist(), declared.far.tolist(), declared.run.tolist(), strict=True):
            records = np.array(members[nodes[near]], np.int64)
            yield Edges(records, np.full_like(records, far), np.full_like(records, run))
        yield self._follow(tx, f"{query}_within", {"versions": [list(one) for one in whole]})

    def _follow(
        self, tx: ManagedTransaction, query: str, parameters: dict[str, Any], *, declared_only: bool = False
    ) -> Edges:
        # In columns as they come: a record may have a million inputs.
        rows = [
            (near, run, revision, np.array(far, np.int64))
            for near, run, revision, far in tx.run(cypher(query), parameters)
        ]
        self._snapshot.pin(tx, {run for _, run, _, _ in rows})
        parts = []
        for near, run, revision, far in rows:
            pin = self._snapshot.follows(run, revision)
            if pin and (pin.declared or not declared_only):
                number = self._snapshot.number_of(pin)
                parts.append(Edges(np.full_like(far, near), far, np.full_like(far, number)))
        return Edges.concat(parts)


def read_names(tx: ManagedTransaction, numbers: Numbers) -> list[Name]:
    """What the numbers of nodes stand for, in their order."""
    found: dict[int, Name] = {}
    for part in _parts(numbers):
        for number, name, dataset in tx.run(cypher("names"), numbers=part.tolist()):
            found[number] = Name(name, dataset)
    try:
        return [found[number] for number in numbers.tolist()]
    except KeyError:
        raise OvertakenError from None


def read_datasets(tx: ManagedTransaction, numbers: Numbers) -> dict[str | None, Numbers]:
    """Which of the records belong to which dataset."""
    parts: dict[str | None, list[Numbers]] = {}
    for part in _parts(numbers):
        for dataset, of in tx.run(cypher("datasets_of"), numbers=part.tolist()):
            parts.setdefault(dataset, []).append(np.array(of, np.int64))
    datasets = {dataset: np.concatenate(of) for dataset, of in parts.items()}
    if sum(map(len, datasets.values())) != len(numbers):
        raise OvertakenError
    return datasets


def _look_up(
    tx: ManagedTransaction, snapshot: Snapshot, ids: Sequence[str]
) -> Iterable[tuple[str, tuple[int | None, bool]]]:
    for first in range(0, len(ids), PART):
        part = list(ids[first : first + PART])
        for name, number, known in tx.run(cypher("known"), ids=part, changes=snapshot.changes):
            yield name, (number, known)


def _parts(numbers: Numbers) -> Iterator[Numbers]:
    for first in range(0, len(numbers), PART):
        yield numbers[first : first + PART]
