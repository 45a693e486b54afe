"""Searches the lake graph breadth first, a level at a time with the frontier as a parameter.

Each record is expanded once, so the number of paths does not matter and cycles end. Records are the numbers of their
nodes; one that has no node, because it is known through its version alone, gets a number below 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import UnknownRecordError
from provenance_store.graph.answer import CrossedRun, Direction
from provenance_store.graph.columns import NONE, Edges, Numbers, Seen
from provenance_store.graph.connection import cypher
from provenance_store.graph.pruned import noted_version, read_notes
from provenance_store.graph.reduced import dataset_name
from provenance_store.graph.snapshot import Evidence, OvertakenError, Snapshot
from provenance_store.model.ids import is_version_id, version_id_of
from provenance_store.streams.links import StreamLinks

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
        known = dict(look_up(tx, snapshot, ids))
        self._check(tx, snapshot, [one for one in ids if not known[one][1]])
        numbers = [known[one][0] for one in ids]
        # What numbers below 0 stand for; most starts have nodes, and their places here are never used.
        self._names = list(ids)
        self._below = {one: -1 - at for at, (one, n) in enumerate(zip(ids, numbers, strict=True)) if n is None}
        self.numbers: Numbers = np.array([-1 - at if n is None else n for at, n in enumerate(numbers)], np.int64)

    def _check(self, tx: ManagedTransaction, snapshot: Snapshot, unknown: list[str]) -> None:
        if unknown := without_known_versions(tx, snapshot, unknown):
            # The run that speaks of them may just have been replaced, which the check tells.
            gaps = [run.run for run in find_gaps(tx, snapshot, unknown)] if snapshot.has_pruned else []
            snapshot.check(tx)
            if gaps:
                raise UnknownRecordError(
                    f"The lake graph does not hold {_list(unknown)}, and what it held of the same versions was pruned "
                    f"with {_list(gaps)}: merge the reduced graphs of these again to ask about it."
                )
            raise UnknownRecordError(
                f"The lake graph has never seen {_list(unknown)}: check the id, and whether the run that wrote or read "
                "it has been reduced and merged."
            )

    def numbers_of(self, tx: ManagedTransaction, snapshot: Snapshot, at: int) -> Numbers:
        """The numbers by which others meet a start: its own, and that of its version, which stands for it."""
        version = version_id_of(self.ids[at]) if snapshot.has_declared else None
        found = look_up(tx, snapshot, [version] if version else [])
        return np.array([self.numbers[at], *(number for _, (number, _) in found if number is not None)], np.int64)

    def number(self, tx: ManagedTransaction, snapshot: Snapshot, ids: Sequence[str]) -> Numbers:
        """The numbers of records that may have no node, because nothing but a stream's assertions tells of them."""
        known = {name: number for name, (number, _) in look_up(tx, snapshot, ids)}
        for one in ids:
            if known[one] is None and one not in self._below:
                self._names.append(one)
                self._below[one] = -len(self._names)
        return np.array([self._below[one] if (n := known[one]) is None else n for one in ids], np.int64)

    def names(self, tx: ManagedTransaction, numbers: Numbers) -> list[Name]:
        """What numbers stand for, in their order."""
        found = iter(read_names(tx, numbers[numbers >= 0]))
        return [next(found) if number >= 0 else self._name(number) for number in numbers.tolist()]

    def datasets(self, tx: ManagedTransaction, numbers: Numbers) -> dict[str | None, Numbers]:
        """Which of the records belong to which dataset."""
        datasets = read_datasets(tx, numbers[numbers >= 0])
        below: dict[str | None, list[int]] = {}
        for number in numbers[numbers < 0].tolist():
            below.setdefault(self._name(number).dataset, []).append(number)
        for dataset, of in below.items():
            datasets[dataset] = np.concatenate([datasets.get(dataset, NONE), np.array(of, np.int64)])
        return datasets

    def _name(self, number: int) -> Name:
        name = self._names[-1 - number]
        return Name(name, dataset_name(name))


class Search:
    """One search in one direction: `advance` takes it a level further."""

    def __init__(
        self,
        snapshot: Snapshot,
        starts: Starts,
        direction: Direction,
        streams: StreamLinks,
        begin: Numbers | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._streams = streams
        self._starts = starts
        self._direction = direction
        self._seen = Seen()
        self._edges: list[Edges] = []
        self._gaps: set[CrossedRun] = set()
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

    def crossed(self, edges: Edges) -> list[CrossedRun]:
        """The runs that made the edges, and those that would have made more, had they not been pruned."""
        return sorted({*self._snapshot.crossed(edges), *self._gaps})

    def steps(self, tx: ManagedTransaction, direction: Direction, frontier: Numbers) -> Iterator[Edges]:
        """The edges that leave records in a direction."""
        query = f"step_{direction}"
        for part in _parts(frontier[frontier >= 0]):
            yield self._follow(tx, query, {"frontier": part.tolist()})
            if self._snapshot.has_pruned:
                numbers = tx.run(cypher(f"pruned_{direction}"), frontier=part.tolist()).value()
                self._gaps.update(gap.run for gap in self._snapshot.gaps(tx, numbers))
        if self._snapshot.has_declared:
            for part in _parts(frontier):
                yield from self._steps_of_versions(tx, direction, part)

    def _steps_of_versions(self, tx: ManagedTransaction, direction: Direction, frontier: Numbers) -> Iterator[Edges]:
        """What declared jobs add: a record goes where its version goes, and a version goes where its records go."""
        members: dict[str, list[int]] = {}
        whole: list[tuple[int, str]] = []
        for number, (name, _) in zip(frontier.tolist(), self._starts.names(tx, frontier), strict=True):
            if version := version_id_of(name):
                members.setdefault(version, []).append(number)
            elif is_version_id(name):
                whole.append((number, name))
        nodes = {
            number: version for version, (number, _) in look_up(tx, self._snapshot, list(members)) if number is not None
        }
        query = f"step_{direction}"
        declared = self._follow(tx, query, {"frontier": list(nodes)}, declared_only=True)
        streams: dict[str, set[int]] = {}
        for near, far, run in zip(declared.near.tolist(), declared.far.tolist(), declared.run.tolist(), strict=True):
            pin = self._snapshot.pin_of(self._snapshot.runs[run].run)
            records = np.array(members[nodes[near]], np.int64)
            names = [name.id for name in self._starts.names(tx, records)] if pin.stream else []
            told = self._streams.told_of(pin.run.run, direction, names) if pin.stream else None
            if told is not None:
                is_told = np.array([name in told for name in names], np.bool_)
                streams.setdefault(pin.run.run, set()).update(records[is_told].tolist())
                records = records[~is_told]
            yield Edges(records, np.full_like(records, far), np.full_like(records, run))
        for stream, reached in streams.items():
            yield from self._steps_of_stream(tx, direction, stream, np.array(sorted(reached), np.int64))
        yield self._follow(tx, f"{query}_within", {"versions": [list(one) for one in whole]})
        if self._snapshot.has_pruned:
            # A record without a node may be one that was pruned, and then its version knows.
            stand_in = {version for version, records in members.items() if min(records) < 0}
            self._note_gaps_of_versions(tx, direction, {name for _, name in whole} | stand_in, set(members))

    def _steps_of_stream(
        self, tx: ManagedTransaction, direction: Direction, run: str, frontier: Numbers
    ) -> Iterator[Edges]:
        """What a stream run's assertions tell of records."""
        names = [name.id for name in self._starts.names(tx, frontier)]
        links = self._streams.links(run, direction, names)
        if not len(links):
            return
        near, far = (links.outputs, links.inputs) if direction == "backward" else (links.inputs, links.outputs)
        own = dict(zip(names, frontier.tolist(), strict=True))
        others = list(dict.fromkeys(far))
        numbers = dict(zip(others, self._starts.number(tx, self._snapshot, others).tolist(), strict=True))
        pin, known = self._snapshot.pin_of(run), "replayed" if links.is_replayed else "inferred"
        # Its graph knows whole versions, and so not all; its assertions do.
        pin = pin._replace(run=msgspec.structs.replace(pin.run, verdict="complete"))
        by_exact = [self._snapshot.number_of(pin, Evidence(known, exact)) for exact in (False, True)]  # type: ignore[arg-type]
        yield Edges(
            np.array([own[one] for one in near], np.int64),
            np.array([numbers[one] for one in far], np.int64),
            np.array([by_exact[exact] for exact in links.exact], np.int64),
        )

    def _note_gaps_of_versions(
        self, tx: ManagedTransaction, direction: Direction, whole: set[str], others: set[str]
    ) -> None:
        """What is lacking of whole versions, and what declared jobs lack of the records in others."""
        for version, notes in read_notes(tx, whole | others).items():
            gaps = self._snapshot.gaps(tx, notes.inputs if direction == "backward" else notes.outputs)
            self._gaps.update(gap.run for gap in gaps if gap.declared or version in whole)

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


def without_known_versions(tx: ManagedTransaction, snapshot: Snapshot, unseen: Sequence[str]) -> list[str]:
    """Of records that nothing captured, those that are not known through their version either.

    A version is known where a job was declared that read or wrote it.
    """
    versions = {version for one in unseen if (version := version_id_of(one))}
    known = {version for version, (_, is_known) in look_up(tx, snapshot, sorted(versions)) if is_known}
    return [one for one in unseen if version_id_of(one) not in known]


def find_gaps(tx: ManagedTransaction, snapshot: Snapshot, records: Sequence[str]) -> list[CrossedRun]:
    """The pruned runs that spoke of versions of these records."""
    notes = read_notes(tx, map(noted_version, records)).values()
    numbers = {number for note in notes for number in (*note.inputs, *note.outputs)}
    return sorted(gap.run for gap in snapshot.gaps(tx, numbers))


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def look_up(
    tx: ManagedTransaction, snapshot: Snapshot, ids: Sequence[str]
) -> Iterable[tuple[str, tuple[int | None, bool]]]:
    """Of each id the number of its node, if it has one, and whether it is known."""
    for first in range(0, len(ids), PART):
        part = list(ids[first : first + PART])
        for name, number, known in tx.run(cypher("known"), ids=part, changes=snapshot.changes):
            yield name, (number, known)


def _parts(numbers: Numbers) -> Iterator[Numbers]:
    for first in range(0, len(numbers), PART):
        yield numbers[first : first + PART]
