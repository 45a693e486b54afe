"""`LakeGraph`: the Python API of the lake graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa
from neo4j import ManagedTransaction

from provenance_store.errors import GraphError
from provenance_store.graph.answer import Answer, Feed
from provenance_store.graph.assertions import forget_assertions, store_assertions
from provenance_store.graph.audit import Audit
from provenance_store.graph.backup import Manifest, Tell, read_keys, take_backup
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.consequences import (
    Consequences,
    KnownRun,
    find_consequences,
    find_inputs,
    find_prefixes,
    find_runs,
    find_runs_about,
)
from provenance_store.graph.find import find_records
from provenance_store.graph.live import Applied, apply_live, doubt_live
from provenance_store.graph.liveness import LiveCount, Liveness, LiveRun, count_liveness, find_live_runs, find_liveness
from provenance_store.graph.merge import Merged, Progress, merge_folder
from provenance_store.graph.overview import Overview, RecordPage, RunFacts, list_records, see_overview, tell_run
from provenance_store.graph.readonly import Table, run_read_only
from provenance_store.graph.relations import Paths, find_common, find_only_from, find_paths
from provenance_store.graph.restore import restore_backup
from provenance_store.graph.retention import Pruned, prune_runs
from provenance_store.graph.schema import check_version, ensure_schema, read_version
from provenance_store.graph.snapshot import OvertakenError, Period
from provenance_store.graph.tombstones import Known, Tombstone, bury_records, find_buried, find_known
from provenance_store.graph.trace import Question, Trace, trace
from provenance_store.model.keys import KeyRing
from provenance_store.settings import Settings
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.runs import StreamRun

_TRIES = 10
T = TypeVar("T")
A = TypeVar("A", Answer, Trace, Paths)


class LakeGraph:
    """The lake graph that the settings name.

    >>> with LakeGraph(load_settings()) as graph:
    ...     graph.merge(Path("reduced/run-1"))
    ...     graph.backward(["lake:counts/run-1#headwater"], sources_only=True).records

    An answer is held whole. A `Trace` is not: it knows its verdict, runs and counts, and reads records and edges a page
    at a time, for answers of any size. Every question is written down in the audit log before it is answered; `who`
    says for whom it is asked, where that is not the user of this process.
    """

    def __init__(self, settings: Settings, *, who: str | None = None) -> None:
        self._audit = Audit(settings, who)
        self._keys = KeyRing(settings)
        self._lake = settings.lake
        self._connection = Connection(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._connection.close()

    def merge(self, folder: Path, *, progress: Progress | None = None) -> Merged:
        """Merge the reduced graph in `folder`; `progress` is told how many edges of how many are in."""
        return merge_folder(self._connection, folder, progress)

    def ensure_schema(self) -> None:
        """Bring the database to this release's schema, as every merge does: before live messages are taken in."""
        ensure_schema(self._connection)

    def apply_live(self, messages: Sequence[LiveMessage]) -> Applied:
        """Take in what one bucket of a running stream query tells, in its order; what was taken in changes nothing."""
        return apply_live(self._connection, messages)

    def doubt_live(self, run: str) -> None:
        """Say of a running stream query that not all that it told could be taken in."""
        doubt_live(self._connection, run)

    def live_runs(self) -> list[LiveRun]:
        """The stream queries that go on, and how far each has come."""
        return self._audit.keep(
            "live-runs", {}, lambda: self._connection.read(find_live_runs), lambda found: {"rows": len(found)}
        )

    def liveness(self, ids: Sequence[str]) -> list[Liveness]:
        """Whether records may still lead to results of stream queries that are running, run by run."""
        return self._audit.keep(
            "liveness",
            {"records": len(ids)},
            lambda: list(find_liveness(self._connection, ids)),
            lambda found: {"records": sum(bool(one.runs) for one in found)},
        )

    def count_liveness(self, ids: Sequence[str]) -> list[LiveCount]:
        """The same of many records by their numbers, for each run in which any is or was live."""
        return self._audit.keep(
            "liveness",
            {"records": len(ids)},
            lambda: count_liveness(self._connection, ids),
            lambda found: {"rows": len(found)},
        )

    def store_assertions(self, run: str) -> int:
        """Store the keys of a stream run's events for Cypher; how many there are. Again changes nothing."""
        return self._audit.keep(
            "assertions",
            {"run": run},
            lambda: store_assertions(self._connection, StreamRun(self._lake, run)),
            lambda stored: {"rows": stored},
        )

    def forget_assertions(self, run: str) -> int:
        """Remove the keys of a stream run's events that were stored for Cypher; how many there were."""
        return self._audit.keep(
            "assertions forgotten",
            {"run": run},
            lambda: forget_assertions(self._connection, run),
            lambda forgotten: {"rows": forgotten},
        )

    def prune(
        self,
        *,
        before: datetime | None = None,
        dataset: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pruned:
        """Remove the runs merged before a time, or that wrote into a dataset; answers that lack them say so."""
        return self._audit.keep(
            "prune",
            {"before": before, "dataset": dataset, "dry_run": dry_run},
            lambda: prune_runs(self._connection, before=before, dataset=dataset, dry_run=dry_run, progress=progress),
            lambda pruned: {"runs": [run.run for run in pruned.runs], "edges": pruned.edges, "records": pruned.records},
        )

    def bury(self, ids: Sequence[str], purge: str, fingerprints: Sequence[str | None] | None = None) -> None:
        """Make records into tombstones of a purge, each with its fingerprint where there is one; again does nothing."""
        self._audit.keep(
            "bury",
            {"purge": purge, "records": len(ids)},
            lambda: bury_records(self._connection, ids, purge, fingerprints),
            lambda _: {},
        )

    def buried(self, ids: Sequence[str]) -> list[Tombstone]:
        """Those of the records that were purged."""
        return self._audit.keep(
            "buried",
            {"records": len(ids)},
            lambda: list(find_buried(self._connection, ids)),
            lambda found: {"records": len(found)},
        )

    def recognise(self, fingerprints: Sequence[str]) -> list[Known]:
        """The purged records that had these fingerprints."""
        return self._audit.keep(
            "recognise",
            {"fingerprints": len(fingerprints)},
            lambda: list(find_known(self._connection, fingerprints)),
            lambda found: {"records": len(found)},
        )

    def backup(self, folder: Path, *, passphrase: str | None = None, tell: Tell = lambda edges: None) -> Manifest:
        """Write the lake graph as it is now to a new `folder`, and with a passphrase the key ring, encrypted."""

        def back_up() -> Manifest:
            keys = None if passphrase is None else self._keys.export(passphrase)
            return settled(lambda: take_backup(self._connection, folder, tell, keys))

        return self._audit.keep("backup", {"folder": str(folder), "keys": passphrase is not None}, back_up, _made)

    def restore(
        self,
        folder: Path,
        *,
        replace: bool = False,
        passphrase: str | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Manifest:
        """Put a backup in place of nothing, or of all that is there; with its passphrase, take in its key ring too."""

        def put_back() -> Manifest:
            if passphrase is not None:
                self._keys.add(read_keys(folder), passphrase)
            return restore_backup(self._connection, folder, replace=replace, progress=progress)

        asked = {"folder": str(folder), "replace": replace, "keys": passphrase is not None}
        return self._audit.keep("restore", asked, put_back, _made)

    def backward(
        self,
        ids: Iterable[str],
        *,
        depth: int | None = None,
        to: str | None = None,
        sources_only: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        replay: bool = False,
    ) -> Answer:
        """What the records were made from: at most `depth` steps away, only of dataset `to`, only the first sources.

        Stream queries are replayed, if asked for, where the keys of their events leave several possibilities.
        """
        question = Question(_distinct(ids), "backward", depth, to, sources_only, Period(since, until), replay)
        return self._ask(question.direction, question, lambda: trace(self._connection, question).answer())

    def forward(
        self,
        ids: Iterable[str],
        *,
        depth: int | None = None,
        to: str | None = None,
        sinks_only: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        replay: bool = False,
    ) -> Answer:
        """What was made from the records: at most `depth` steps away, only of dataset `to`, only the last results."""
        question = Question(_distinct(ids), "forward", depth, to, sinks_only, Period(since, until), replay)
        return self._ask(question.direction, question, lambda: trace(self._connection, question).answer())

    def trace(self, question: Question) -> Trace:
        """What a question reaches, to be read in pages."""
        return self._ask(question.direction, question, lambda: trace(self._connection, question))

    def between(
        self, output: str, source: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Paths:
        """Whether `output` depends on `source`, and along which ways."""
        question = Question((output,), "backward", period=Period(since, until))
        return self._ask("between", question, lambda: find_paths(self._connection, question, source), source=source)

    def common(self, ids: Iterable[str], *, since: datetime | None = None, until: datetime | None = None) -> Trace:
        """What all of the records were made from."""
        question = Question(_distinct(ids), "backward", period=Period(since, until))
        return self._ask("common", question, lambda: find_common(self._connection, question))

    def only_from(self, ids: Iterable[str], *, since: datetime | None = None, until: datetime | None = None) -> Trace:
        """What was made from the records and from nothing else: without them it would be left without a source."""
        question = Question(_distinct(ids), "forward", period=Period(since, until))
        return self._ask("only-from", question, lambda: find_only_from(self._connection, question))

    def find(self, dataset: str, *key: str) -> list[str]:
        """The ids of the record that has this key, in every version of the dataset; hashed keys are found too."""
        texts = self._keys.texts_of(*key)
        return self._audit.keep(
            "find",
            {"dataset": dataset},  # and not the key, which may be personal
            lambda: self._connection.read(lambda tx: find_records(tx, dataset, texts)),
            lambda ids: {"ids": ids},
        )

    def consequences(self, ids: Sequence[str], *, selection: str) -> Consequences:
        """All that was made from the records of a purge's selection; ids that nobody has seen are passed over."""
        return self._audit.keep(
            "consequences",
            {"selection": selection, "records": len(ids)},
            lambda: settled(lambda: find_consequences(self._connection, ids)),
            lambda found: {"verdict": found.verdict, "records": len(found.ids)},
        )

    def inputs_of(self, run: str, outputs: Sequence[str]) -> pa.ChunkedArray:
        """The ids of what one run made these outputs from, each once."""
        return self._audit.keep(
            "inputs",
            {"run": run, "records": len(outputs)},
            lambda: settled(lambda: find_inputs(self._connection, run, outputs)),
            lambda found: {"records": len(found)},
        )

    def runs(self) -> list[KnownRun]:
        """All runs that there is a graph of, or was before it was pruned."""
        return self._audit.keep(
            "runs", {}, lambda: self._connection.read(find_runs), lambda found: {"rows": len(found)}
        )

    def runs_about(self, datasets: Iterable[str]) -> set[str]:
        """The runs with graphs that lead from or into datasets."""
        names = sorted(set(datasets))
        return self._audit.keep(
            "runs",
            {"datasets": names},
            lambda: self._connection.read(lambda tx: find_runs_about(tx, names)),
            lambda found: {"rows": len(found)},
        )

    def prefixes(self, prefixes: Iterable[str]) -> set[str]:
        """Those of the prefixes that an id of a record begins with."""
        asked = sorted(set(prefixes))
        return self._audit.keep(
            "prefixes",
            {"prefixes": asked},
            lambda: self._connection.read(lambda tx: find_prefixes(tx, asked)),
            lambda found: {"rows": len(found)},
        )

    def datasets(self) -> list[Feed]:
        """The lake from above: which dataset feeds which, through which DIC, by how many runs and derivations."""

        def ask(tx: ManagedTransaction) -> list[Feed]:
            check_version(read_version(tx))
            return [Feed(*row) for row in tx.run(cypher("feeds")).values()]

        return self._audit.keep("datasets", {}, lambda: self._connection.read(ask), lambda feeds: {"rows": len(feeds)})

    def overview(self, *, runs: Iterable[str] | None = None) -> Overview:
        """The lake from above with counts and verdicts: of all runs, or of some."""
        among = None if runs is None else sorted(set(runs))
        return self._audit.keep(
            "overview",
            {} if among is None else {"runs": len(among)},
            lambda: self._connection.read(lambda tx: see_overview(tx, among)),
            lambda seen: {"rows": len(seen.feeds)},
        )

    def browse(self, prefix: str, *, after: str | None = None, limit: int = 50) -> RecordPage:
        """The records whose ids begin with a prefix, a page at a time; the next one begins after the last id."""
        return self._audit.keep(
            "browse",
            {},  # what someone types to look for a record may be personal
            lambda: self._connection.read(lambda tx: list_records(tx, prefix, after, limit)),
            lambda page: {"records": len(page.records)},
        )

    def describe_run(self, run: str) -> RunFacts:
        """What is told of one run: its account in numbers, and when it was merged."""
        return self._audit.keep(
            "run",
            {"run": run},
            lambda: self._connection.read(lambda tx: tell_run(tx, run)),
            lambda facts: {"verdict": facts.verdict},
        )

    def cypher(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout_seconds: float = 60.0
    ) -> Table:
        """The rows of a query that only reads; any other is refused."""
        given = parameters or {}
        return self._audit.keep(
            "cypher",
            # Values may be personal, and are what parameters are for.
            {"query": query, "parameters": sorted(given)},
            lambda: run_read_only(self._connection, query, given, timeout_seconds=timeout_seconds),
            lambda table: {"rows": len(table.rows)},
        )

    def _ask(self, kind: str, question: Question, ask: Callable[[], A], **more: str) -> A:
        def ending(answer: A) -> dict[str, Any]:
            records = len(answer) if isinstance(answer, Trace) else len(answer.records)
            return {"verdict": answer.verdict, "records": records}

        return self._audit.keep(kind, {**_asked(question), **more}, lambda: settled(ask), ending)


def settled(ask: Callable[[], T]) -> T:
    """What `ask` returns; again where a run was replaced under it, as a page of a trace may find out late."""
    for _ in range(_TRIES):
        try:
            return ask()
        except OvertakenError:
            continue
    raise GraphError(f"Runs were replaced under this question {_TRIES} times: ask it again when the merges are done.")


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _made(manifest: Manifest) -> dict[str, Any]:
    return {"made_at": manifest.made_at}


def _asked(question: Question) -> dict[str, Any]:
    """What sets the question apart from the plain one, for the audit log."""
    period = {"since": question.period.since, "until": question.period.until}
    limits = {"depth": question.depth, "to": question.to, "ends_only": question.ends_only, **period}
    return {"start": list(question.start), **{name: value for name, value in limits.items() if value}}
