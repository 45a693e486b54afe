"""The lake graph as it was at one moment, for readers: Neo4j shows them what others write meanwhile.

Every graph that becomes visible gets a number, the count of such changes. A question notes the count when it begins and
follows only graphs up to it; a run is looked up when its first edge is met. What is replaced under a question is on
its way out, so the question is asked again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from neo4j import ManagedTransaction

from provenance_store.errors import GraphError
from provenance_store.graph.answer import CrossedRun
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


class Snapshot:
    """Which graphs are followed. `number_of` numbers the runs in the order they were met."""

    def __init__(self, tx: ManagedTransaction, period: Period) -> None:
        version, self.changes, self._replacements, self.has_declared = tx.run(cypher("snapshot")).single(strict=True)
        check_version(version)
        self._period = period
        self._pins: dict[str, Pin | None] = {}
        self.runs: list[CrossedRun] = []
        self._numbers: dict[str, int] = {}

    def pin(self, tx: ManagedTransaction, runs: Iterable[str]) -> None:
        """Decide of runs, once and for all, which graph of each is followed, if any."""
        if new := sorted(set(runs) - self._pins.keys()):
            self._pins.update(dict.fromkeys(new))
            since, until = self._period.since, self._period.until
            for row in tx.run(cypher("pin"), runs=new, changes=self.changes, since=since, until=until):
                run = CrossedRun(row["run"], row["dic"], row["verdict"])
                self._pins[run.run] = Pin(row["revision"], run, row["declared"])

    def follows(self, run: str, revision: int) -> Pin | None:
        """The pin, where this graph of the run is the one to follow."""
        pin = self._pins[run]
        return pin if pin and pin.revision == revision else None

    def number_of(self, pin: Pin) -> int:
        """The number of a run that is crossed."""
        number = self._numbers.setdefault(pin.run.run, len(self.runs))
        if number == len(self.runs):
            self.runs.append(pin.run)
        return number

    def crossed(self, edges: Edges) -> list[CrossedRun]:
        """The runs that made the edges."""
        return sorted(self.runs[number] for number in np.unique(edges.run).tolist())

    def check(self, tx: ManagedTransaction) -> None:
        """Raise OvertakenError where what was read may be half of a graph that is on its way out."""
        now = tx.run(cypher("snapshot")).single(strict=True)
        pins = [[run, pin.revision] for run, pin in self._pins.items() if pin]
        replaced = tx.run(cypher("pins_replaced"), pins=pins).single(strict=True)["replaced"]
        if replaced or now["replacements"] != self._replacements:
            raise OvertakenError
