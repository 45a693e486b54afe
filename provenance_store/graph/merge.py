"""Merges a reduced graph into the lake graph, so that a reader sees all of it or nothing.

The edges of a run carry a revision, a number that each new content of the run gets in this lake graph. They are written
in many transactions under a revision that is only *staged* on the run; the last transaction makes it the visible one,
and what it replaces is removed after that.

Each transaction that writes edges also writes on the run how many are in, and holds the run's lock meanwhile. So a
transaction that is replayed, or a merge that is run again after any failure, knows what is there without looking for
single edges, and goes on behind it. And it leaves a `(:Batch)` that lists its relationships: by these they are found
when they are replaced, which an index over all relationships would make dear for every merge.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from neo4j import ManagedTransaction

from provenance_store.errors import GraphError, InputError
from provenance_store.graph.batches import Batch, Feeds, batches_of
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.pruned import PrunedMeanwhileError, count_prunes, inherit, write_between_prunes
from provenance_store.graph.reduced import ReducedGraph
from provenance_store.graph.schema import ensure_schema
from provenance_store.model.account import Account

Progress = Callable[[int, int], None]
T = TypeVar("T")


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """What the run's node says before a merge: the visible graph, and the one that is staged or was left half-way."""

    generation: int | None = None
    revision: int | None = None
    digest: str | None = None
    staged_generation: int | None = None
    staged_revision: int | None = None
    staged_digest: str | None = None
    staged_edges: int = 0
    revisions: int = 0
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """What a merge has to do: nothing but the account (`present`), go on (`resumed`), or begin (`new`)."""

    kind: Literal["present", "resumed", "new"]
    revision: int
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did; `changed` is false where the same graph was there already."""

    run: str
    generation: int
    edges: int
    changed: bool
    replaced: bool


def decide(state: RunState, account: Account, digest: str) -> Stage:
    """Which revision this graph is merged under, or why it is refused."""
    if state.generation is not None and account.generation < state.generation:
        raise InputError(
            f"Run {account.run!r} is in the lake graph with generation {state.generation}, and this reduced graph is "
            f"of the older generation {account.generation}: reduce the run again and merge that."
        )
    graph = (account.generation, digest)
    if state.revision is not None and (state.generation, state.digest) == graph:
        return Stage("present", state.revision, state.unclean)
    if state.staged_revision is not None and (state.staged_generation, state.staged_digest) == graph:
        return Stage("resumed", state.staged_revision)
    return Stage("new", state.revisions + 1)


def merge_folder(connection: Connection, folder: Path, progress: Progress | None = None) -> Merged:
    """Merge the reduced graph in `folder`. The same one again changes nothing; a newer one replaces the earlier."""
    graph = ReducedGraph.open(folder)
    ensure_schema(connection)
    account, tell = graph.account, progress or (lambda done, total: None)
    tell(0, graph.edges)
    digest = graph.digest()
    stage = connection.write(lambda tx: _begin(tx, graph, digest))
    replaced = False
    if stage.kind != "present":
        feeds: Feeds = Counter()
        for batch in _ahead(batches_of(graph)):
            tell(_merge_batch(connection, account, stage, batch), graph.edges)
            feeds.update(batch.feeds())
        replaced, unclean = connection.write(lambda tx: _switch(tx, graph, digest, stage, feeds))
    else:
        unclean = stage.unclean
        tell(graph.edges, graph.edges)
    if unclean:
        _clean(connection, account.run, stage.revision)
    return Merged(account.run, account.generation, graph.edges, stage.kind != "present", replaced)


def _begin(tx: ManagedTransaction, graph: ReducedGraph, digest: str) -> Stage:
    account = graph.account
    stage = decide(_lock(tx, account.run), account, digest)
    if stage.kind == "new":
        tx.run(
            cypher("merge_stage"),
            run=account.run,
            generation=account.generation,
            revision=stage.revision,
            digest=digest,
        ).consume()
    elif stage.kind == "present":
        tx.run(
            cypher("merge_account"), run=account.run, revision=stage.revision, account=_properties(account)
        ).consume()
    return stage


def _merge_batch(connection: Connection, account: Account, stage: Stage, batch: Batch) -> int:
    """Write what is not there yet of the batch; how many edges of the graph are there now."""

    def work(tx: ManagedTransaction) -> int:
        state = _lock(tx, account.run)
        if _is_visible(state, stage):
            return batch.end
        if state.staged_revision != stage.revision:
            raise _overtaken(account)
        if state.staged_edges < batch.end:
            left = batch.beyond(state.staged_edges)
            before = count_prunes(tx)
            parameters = left.parameters() | inherit(tx, left.records if before else ())
            parameters |= {"run": account.run, "revision": stage.revision, "end": left.end}
            tx.run(cypher("merge_batch"), parameters).consume()
            if count_prunes(tx) != before:
                raise PrunedMeanwhileError
        return max(state.staged_edges, batch.end)

    return write_between_prunes(connection, work)


def _switch(tx: ManagedTransaction, graph: ReducedGraph, digest: str, stage: Stage, feeds: Feeds) -> tuple[bool, bool]:
    account = graph.account
    # Buckets of a running query take their own lock first and the run's last, and so does this.
    tx.run(cypher("live_end"), run=account.run).consume()
    state = _lock(tx, account.run)
    if _is_visible(state, stage):
        # This very switch was committed before: by a commit whose confirmation was lost, or by a merge beside this one.
        return False, state.unclean
    switched = tx.run(
        cypher("merge_switch"),
        run=account.run,
        generation=account.generation,
        revision=stage.revision,
        digest=digest,
        edges=graph.edges,
        account=_properties(account),
    ).single()
    if switched is None:
        raise _overtaken(account)
    kept = sorted({name for pair in feeds for name in pair})
    tx.run(cypher("merge_feeds_clear"), run=account.run, kept=kept).consume()
    rows = [[source, target, edges] for (source, target), edges in sorted(feeds.items())]
    tx.run(cypher("merge_feeds"), run=account.run, dic=account.dic, feeds=rows).consume()
    return bool(switched["replaces"]), stage.revision > 1


def remove_before(connection: Connection, run: str, revision: int) -> Iterator[tuple[int, int]]:
    """Remove the run's graphs before a revision, a batch at a time; how many edges and records went with each."""
    parameters = {"run": run, "revision": revision}
    while connection.write(lambda tx: tx.run(cypher("live_clear"), run=run).single(strict=True)["removed"]):
        pass
    while removed := connection.write(lambda tx: tx.run(cypher("merge_clean"), parameters).single()):
        yield removed["edges"], removed["records"]


def _clean(connection: Connection, run: str, revision: int) -> None:
    for _ in remove_before(connection, run, revision):
        pass
    connection.write(lambda tx: tx.run(cypher("merge_cleaned"), run=run, revision=revision).consume())


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Prepare the next item while the one before is at work."""
    with ThreadPoolExecutor(1) as executor:
        following = executor.submit(next, items, None)
        while (item := following.result()) is not None:
            following = executor.submit(next, items, None)
            yield item


def _is_visible(state: RunState, stage: Stage) -> bool:
    return state.staged_revision is None and state.revision == stage.revision


def _lock(tx: ManagedTransaction, run: str) -> RunState:
    return msgspec.convert(tx.run(cypher("merge_lock"), run=run).single(strict=True).data(), RunState)


def _properties(account: Account) -> dict[str, Any]:
    # A node holds no maps; and the generation is set by the switch alone, because it is what readers go by.
    fields: dict[str, Any] = msgspec.to_builtins(account)
    fields["missing"] = msgspec.json.encode(account.missing).decode()
    for name in ("run", "generation"):
        del fields[name]
    return fields


def _overtaken(account: Account) -> GraphError:
    return GraphError(
        f"Another merge of run {account.run!r} with a different graph began while this one was under way, and goes "
        "first. Nothing of this one is visible; merge again if this is the graph to keep."
    )
