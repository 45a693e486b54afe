"""Prunes runs from the lake graph: their derivations go, and answers that lack them say so.

A prune takes three steps for each run, all in transactions of bounded size, and may be cut off anywhere: run again, it
goes on. First it is noted on both ends of each derivation that this one goes; nobody heeds that yet. Then one
transaction makes the run a pruned one for its readers. Last the derivations are removed, and with them records that
nothing else speaks of. So readers see a run whole, or pruned with all that has to be said about it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec
from neo4j import ManagedTransaction, Record

from provenance_store.errors import InputError
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.merge import Progress, remove_before
from provenance_store.graph.pruned import noted_version
from provenance_store.graph.schema import ensure_schema
from provenance_store.graph.snapshot import Period, Snapshot


class Fed(msgspec.Struct, frozen=True):
    """How many derivations of a run lead from one dataset into another."""

    source: str
    target: str
    edges: int


class OldRun(msgspec.Struct, frozen=True):
    """A run that is to be pruned. Derivations between ids outside the lake are in `edges` alone."""

    run: str
    dic: str
    merged_at: datetime
    edges: int
    feeds: list[Fed]


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did: the runs pruned, those left because they were merged anew meanwhile, and how much was removed.

    What an earlier prune was cut off from removing is removed too, and counted. A dry run removes nothing.
    """

    runs: list[OldRun]
    left: list[OldRun]
    edges: int = 0
    records: int = 0


class _Graph(NamedTuple):
    run: str
    revision: int


def prune_runs(
    connection: Connection,
    *,
    before: datetime | None,
    dataset: str | None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pruned:
    """Prune the runs that were merged before a time, or that wrote into a dataset; with both, those that did both."""
    if before is None and dataset is None:
        raise InputError("Say what to prune: runs that were merged before a time, or that wrote into a dataset.")
    if before is not None and before.tzinfo is None:
        raise InputError(f"{before} may be any of many moments: give it a time zone.")
    chosen = connection.read(lambda tx: _select(tx, before, dataset))
    if dry_run:
        return Pruned(runs=[run for _, run in chosen], left=[])
    ensure_schema(connection)
    steps = _Steps(2 * sum(run.edges for _, run in chosen), progress)
    for run, number, revision in connection.read(lambda tx: tx.run(cypher("prune_unclean")).values()):
        _remove(connection, _Graph(run, revision), number, steps, is_planned=False)
    pruned = {run.run: _prune(connection, graph, steps) for graph, run in chosen}
    return Pruned(
        runs=[run for _, run in chosen if pruned[run.run]],
        left=[run for _, run in chosen if not pruned[run.run]],
        edges=steps.edges,
        records=steps.records,
    )


class _Steps:
    """How far it is: each edge is noted, then removed."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.edges = 0
        self.records = 0
        self._total = total
        self._done = 0
        self._tell = progress or (lambda done, total: None)

    def done(self, edges: int) -> None:
        self._done += edges
        self._tell(self._done, self._total)


def _select(tx: ManagedTransaction, before: datetime | None, dataset: str | None) -> list[tuple[_Graph, OldRun]]:
    Snapshot(tx, Period())  # which refuses a graph of a later release
    rows = tx.run(cypher("prune_select"), before=before, dataset=dataset)
    return [(_Graph(row["run"], row["revision"]), _old_run(row)) for row in rows]


def _old_run(row: Record) -> OldRun:
    feeds = [Fed(*feed) for feed in row["feeds"]]
    return OldRun(row["run"], row["dic"], row["merged_at"].to_native(), row["edges"], feeds)


def _prune(connection: Connection, graph: _Graph, steps: _Steps) -> bool:
    """Whether the run was pruned, and not replaced meanwhile."""
    begun = connection.write(lambda tx: _begin(tx, graph))
    if begun is None:
        return False
    number = begun["number"]
    for edges in _note(connection, graph, number):
        steps.done(edges)
    if not connection.write(lambda tx: _switch(tx, graph, number)):
        return False
    _remove(connection, graph, number, steps)
    return True


def _begin(tx: ManagedTransaction, graph: _Graph) -> Record | None:
    """Give the prune its number; a stream query is followed no longer, so that its graph stays as it is."""
    begun = tx.run(cypher("prune_begin"), graph._asdict()).single()
    if begun is not None:
        tx.run(cypher("live_end"), run=graph.run).consume()
    return begun


def _note(connection: Connection, graph: _Graph, number: int) -> Iterator[int]:
    while edges := connection.write(lambda tx: _note_batch(tx, graph, number)):
        yield edges


def _note_batch(tx: ManagedTransaction, graph: _Graph, number: int) -> int:
    batch = tx.run(cypher("prune_ends"), graph._asdict(), number=number).single()
    if batch is None:
        return 0
    outputs, inputs = sorted(batch["outputs"]), sorted(batch["inputs"])
    tx.run(
        cypher("prune_note"),
        number=number,
        batch=batch["batch"],
        outputs=outputs,
        inputs=inputs,
        versions_made=sorted(set(map(noted_version, outputs))),
        versions_used=sorted(set(map(noted_version, inputs))),
    ).consume()
    return int(batch["edges"])


def _switch(tx: ManagedTransaction, graph: _Graph, number: int) -> bool:
    if tx.run(cypher("prune_switch"), graph._asdict(), number=number).single() is None:
        return False
    tx.run(cypher("merge_feeds_clear"), run=graph.run, kept=[]).consume()
    return True


def _remove(connection: Connection, graph: _Graph, number: int, steps: _Steps, *, is_planned: bool = True) -> None:
    for edges, records in remove_before(connection, graph.run, graph.revision + 1):
        steps.edges += edges
        steps.records += records
        steps.done(edges if is_planned else 0)
    connection.write(lambda tx: tx.run(cypher("prune_cleaned"), run=graph.run, number=number).consume())
