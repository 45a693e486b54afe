"""The lake graph as it was at one moment, for readers: Neo4j shows them what others write meanwhile.

Every graph that becomes visible gets a number, the count of such changes. A question notes the count when it begins and
follows only graphs up to it; a run is looked up when its first edge is met. What is replaced under a question is on
its way out, so the question is asked again. The graph of a running query only grows, so a question holds all of it that
was there when it began, and perhaps more.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import GraphError
from provenance_store.graph.answer import CrossedRun, Known
from provenance_store.graph.columns import Edges
from provenance_store.graph.connection import cypher
from provenance_store.graph.schema import check_version


class OvertakenError(GraphError):
    """A graph was replaced under a question, which has to be asked again."""

    def __init__(self) -> None:
        super().__init__("A run was replaced in the lake graph while this question was answered: ask it again.")


@dataclass(frozen=True, slots=True)
class Period:
    """Which runs count, by when their graph was merged: from `since` on, and before `until`."""

    since: datetime | None = None
    until: datetime | None = None


class Pin(NamedTuple):
    """The one graph of a run that is followed."""

    revision: int
    run: CrossedRun
    # Edges of a declared run are between whole versions, and hold for every record in them.
    declared: bool
    # What stands behind a stream run's edges is asked of its assertions.
    stream: bool


class Evidence(NamedTuple):
    """How edges are known, and whether they surely are."""

    known: Known
    exact: bool


CAPTURED = Evidence("captured", exact=True)
DECLARED = Evidence("declared", exact=False)


class Gap(NamedTuple):
    """A pruned run, whose derivations an answer lacks."""

    run: CrossedRun
    declared: bool


class Snapshot:
    """Which graphs are followed. `number_of` numbers runs, with how their edges are known, as they are met."""

    def __init__(self, tx: ManagedTransaction, period: Period) -> None:
        now = tx.run(cypher("snapshot")).single(strict=True)
        check_version(now["schema"])
        self.changes = now["changes"]
        self._replacements = now["replacements"]
        self.has_declared = now["declared"]
        self._prunes = now["pruned"]
        self._live = now["live"]
        self.has_pruned = self._prunes > 0
        self._period = period
        self._pins: dict[str, Pin | None] = {}
        self._gaps: dict[int, Gap | None] = {}
        self.runs: list[CrossedRun] = []
        self.evidence: list[Evidence] = []
        self._numbers: dict[tuple[CrossedRun, Evidence], int] = {}

    @property
    def moment(self) -> str:
        """A name of this state of the lake graph: of two that are equal, nothing changed between."""
        return f"{self.changes}.{self._replacements}.{self._prunes}.{self._live}"

    def pin(self, tx: ManagedTransaction, runs: Iterable[str]) -> None:
        """Decide of runs, once and for all, which graph of each is followed, if any."""
        if new := sorted(set(runs) - self._pins.keys()):
            self._pins.update(dict.fromkeys(new))
            for row in tx.run(cypher("pin"), runs=new, changes=self.changes, **asdict(self._period)):
                run = CrossedRun(row["run"], row["dic"], row["verdict"], live=row["live"])
                self._pins[run.run] = Pin(row["revision"], run, row["declared"], row["stream"])

    def revision_of(self, run: str) -> int | None:
        """Which graph of a run that was decided on is followed, if any."""
        pin = self._pins[run]
        return pin and pin.revision

    def follows(self, run: str, revision: int) -> Pin | None:
        """The pin, where this graph of the run is the one to follow."""
        pin = self._pins[run]
        return pin if pin and pin.revision == revision else None

    def gaps(self, tx: ManagedTransaction, numbers: Iterable[int]) -> list[Gap]:
        """The runs behind the numbers of prunes, of those that are still pruned and count."""
        numbers = set(numbers)
        if new := sorted(numbers - self._gaps.keys()):
            self._gaps.update(dict.fromkeys(new))
            for row in tx.run(cypher("pruned_runs"), numbers=new, **asdict(self._period)):
                run = CrossedRun(row["run"], row["dic"], "partial", pruned=True)
                self._gaps[row["number"]] = Gap(run, row["declared"])
        return [gap for number in numbers if (gap := self._gaps[number])]

    def number_of(self, pin: Pin, evidence: Evidence | None = None) -> int:
        """The number of a run that is crossed, by edges that are known so."""
        known = evidence or (DECLARED if pin.declared else CAPTURED)
        number = self._numbers.setdefault((pin.run, known), len(self.runs))
        if number == len(self.runs):
            self.runs.append(pin.run)
            self.evidence.append(known)
        return number

    def pin_of(self, run: str) -> Pin:
        """What was decided of a run that is followed."""
        pin = self._pins[run]
        if pin is None:
            raise OvertakenError
        return pin

    def crossed(self, edges: Edges) -> list[CrossedRun]:
        """The runs that made the edges."""
        return sorted({self.runs[number] for number in np.unique(edges.run).tolist()})

    def check(self, tx: ManagedTransaction) -> None:
        """Raise OvertakenError where what was read may be half of a graph that is on its way out."""
        now = tx.run(cypher("snapshot")).single(strict=True)
        pins = [[run, pin.revision] for run, pin in self._pins.items() if pin]
        replaced = tx.run(cypher("pins_replaced"), pins=pins).single(strict=True)["replaced"]
        if replaced or now["replacements"] != self._replacements:
            raise OvertakenError
