"""The lake from above, and its records in the order of their ids: what someone sees who has not asked anything yet."""

import msgspec
from neo4j import ManagedTransaction

from provenance_store.errors import InputError, UnknownRunError
from provenance_store.graph.connection import cypher
from provenance_store.graph.find import dataset_prefix, following
from provenance_store.graph.schema import check_version, read_version
from provenance_store.graph.snapshot import Period, Snapshot
from provenance_store.model.account import Verdict, worst_verdict

# Counting a dataset's records stops here: nobody reads a longer number off a graph, and it has to be there at once.
COUNTED = 10_000


class SeenDataset(msgspec.Struct, frozen=True):
    """A dataset, and how many of its records the lake graph knows: at least so many where `more` says so."""

    name: str
    records: int
    more: bool


class SeenFeed(msgspec.Struct, frozen=True):
    """One dataset feeds another through a DIC, with the worst verdict of the runs, the newest of them merged then.

    `live` says that one of them is a stream query that goes on, and that was last heard of then.
    """

    source: str
    target: str
    dic: str
    runs: int
    edges: int
    verdict: Verdict
    merged_at: str
    live: bool


class Overview(msgspec.Struct, frozen=True):
    """All datasets that feed others or are fed."""

    datasets: list[SeenDataset]
    feeds: list[SeenFeed]


class ListedRecord(msgspec.Struct, frozen=True):
    """A record by its id; `purge` is the plan that it went by, where it is a tombstone."""

    id: str
    dataset: str | None
    purge: str | None


class RecordPage(msgspec.Struct, frozen=True):
    """Records in the order of their ids, and whether there are more behind them."""

    records: list[ListedRecord]
    more: bool


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the lake graph tells of one run: its account in numbers, and when its graph became visible."""

    run: str
    dic: str
    verdict: Verdict
    pruned: bool
    declared: bool
    generation: int
    marks: list[str]
    merged_at: str | None
    edges: int | None
    messages: int | None
    duplicates: int | None
    discarded: int | None
    rejected: int | None
    missing: int
    # Of a stream query that goes on: how far it has come, and how far back in time its results reach, in milliseconds.
    live: bool
    watermark: int | None
    reach: int | None


def see_overview(tx: ManagedTransaction, runs: list[str] | None = None) -> Overview:
    """Which dataset feeds which, through any run or through these alone, and how many records each has."""
    snapshot = Snapshot(tx, Period())
    feeds = [
        SeenFeed(source, target, dic, count, edges, worst_verdict(verdicts), merged_at.isoformat(), live)
        for source, target, dic, count, edges, verdicts, merged_at, live in tx.run(cypher("overview_feeds"), runs=runs)
    ]
    names = sorted({name for feed in feeds for name in (feed.source, feed.target)})
    ranges = {dataset_prefix(name): name for name in names}
    rows = tx.run(
        cypher("overview_counts"),
        ranges=[[first, following(first)] for first in ranges],
        changes=snapshot.changes,
        most=COUNTED + 1,
    )
    datasets = [SeenDataset(ranges[first], min(count, COUNTED), count > COUNTED) for first, count in rows]
    return Overview(sorted(datasets, key=lambda dataset: dataset.name), feeds)


def list_records(tx: ManagedTransaction, prefix: str, after: str | None, limit: int) -> RecordPage:
    """The records whose ids begin with the prefix, and come after an id where one is given."""
    if not prefix:
        raise InputError("Give the beginning of an id, to list the records that have it.")
    snapshot = Snapshot(tx, Period())
    rows = tx.run(
        cypher("records_page"),
        first=prefix if after is None else max(prefix, after + "\0"),
        end=following(prefix),
        changes=snapshot.changes,
        limit=limit + 1,
    )
    records = [ListedRecord(*row) for row in rows.values()]
    return RecordPage(records[:limit], len(records) > limit)


def tell_run(tx: ManagedTransaction, run: str) -> RunFacts:
    """The facts of a run; UnknownRunError where the lake graph has never seen it."""
    check_version(read_version(tx))
    row = tx.run(cypher("run_account"), run=run).single()
    if row is None:
        raise UnknownRunError(f"The lake graph has never seen run {run}: check its id, and whether it was merged.")
    lost = msgspec.json.decode(row["missing"] or "{}", type=dict[str, list[int]])
    return RunFacts(**{**row, "missing": sum(map(len, lost.values()))})
