"""What a purge asks of the lake graph: all that was made from many records, by which runs, and from what else.

Ids that the lake graph has never seen are no error here: nothing that it knows of was made from them. All answers are
columns, because there may be a million of anything but runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
import pyarrow as pa
from neo4j import ManagedTransaction

from provenance_store.graph.answer import CrossedRun
from provenance_store.graph.columns import NONE, Numbers, Seen
from provenance_store.graph.connection import cypher
from provenance_store.graph.search import PART, find_gaps, look_up, read_names, without_known_versions
from provenance_store.graph.snapshot import OvertakenError, Period, Snapshot
from provenance_store.graph.trace import PAGE, Question, Reader, trace
from provenance_store.model.account import Verdict, worst_verdict


@dataclass(frozen=True, slots=True)
class Consequences:
    """The ids of all that was made from records, in the order of distance, and the runs that made it."""

    ids: pa.ChunkedArray
    runs: list[CrossedRun]

    @property
    def verdict(self) -> Verdict:
        """The worst of the runs that were crossed."""
        return worst_verdict(run.verdict for run in self.runs)


class KnownRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run; a pruned one has no revision, because it has no graph."""

    run: str
    dic: str
    verdict: Verdict
    generation: int
    revision: int | None
    declared: bool
    marks: list[str]
    # A stream query that goes on.
    live: bool = False


def find_consequences(reader: Reader, ids: Sequence[str]) -> Consequences:
    """All that was made from the records, however far away."""
    known, gaps = reader.read(lambda tx: _sort_out(tx, ids))
    if not known:
        return Consequences(_columns(()), sorted(gaps))
    # What only might have been made from the records is not taken for it where a replay can tell.
    found = trace(reader, Question(tuple(known), "forward", replay=True))
    return Consequences(_columns(record.id for record in found.records()), sorted({*found.runs, *gaps}))


def find_inputs(reader: Reader, run: str, outputs: Sequence[str]) -> pa.ChunkedArray:
    """The ids of what one run made these outputs from, each once."""
    snapshot, numbers = reader.read(lambda tx: _number_inputs(tx, run, outputs))

    def names(tx: ManagedTransaction, page: Numbers) -> list[str]:
        found = [name.id for name in read_names(tx, page)]
        snapshot.check(tx)
        return found

    def pages() -> Iterator[str]:
        for first in range(0, len(numbers), PAGE):
            page = numbers[first : first + PAGE]
            yield from reader.read(lambda tx, page=page: names(tx, page))  # type: ignore[misc]

    return _columns(pages())


def find_runs(tx: ManagedTransaction) -> list[KnownRun]:
    """All runs that the lake graph has a graph of, or had before it was pruned."""
    snapshot = Snapshot(tx, Period())
    return [msgspec.convert(row.data(), KnownRun) for row in tx.run(cypher("runs"), changes=snapshot.changes)]


def find_runs_about(tx: ManagedTransaction, datasets: Iterable[str]) -> set[str]:
    """The runs with visible graphs that lead from or into datasets."""
    return set(tx.run(cypher("runs_about"), datasets=sorted(set(datasets))).value())


def find_prefixes(tx: ManagedTransaction, prefixes: Iterable[str]) -> set[str]:
    """Those of the prefixes that an id of a record begins with."""
    # Behind all texts that begin with a prefix stands the prefix with its last character raised.
    ranges = [[prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)] for prefix in sorted(set(prefixes))]
    return set(tx.run(cypher("any_within"), ranges=ranges).value())


def _sort_out(tx: ManagedTransaction, ids: Sequence[str]) -> tuple[list[str], set[CrossedRun]]:
    """Those of the ids that are known, and the pruned runs that may have known the others."""
    snapshot = Snapshot(tx, Period())
    known = {name for name, (_, is_known) in look_up(tx, snapshot, ids) if is_known}
    unknown = without_known_versions(tx, snapshot, [one for one in ids if one not in known])
    gaps = find_gaps(tx, snapshot, unknown) if snapshot.has_pruned else []
    snapshot.check(tx)
    left_out = set(unknown)
    return [one for one in dict.fromkeys(ids) if one not in left_out], set(gaps)


def _number_inputs(tx: ManagedTransaction, run: str, outputs: Sequence[str]) -> tuple[Snapshot, Numbers]:
    snapshot = Snapshot(tx, Period())
    snapshot.pin(tx, [run])
    revision = snapshot.revision_of(run)
    if revision is None:
        raise OvertakenError
    seen = Seen()
    parts = [NONE]
    for first in range(0, len(outputs), PART):
        some = list(outputs[first : first + PART])
        found = tx.run(cypher("inputs_in_run"), outputs=some, run=run, revision=revision).single(strict=True)
        parts.append(seen.add(np.array(found["inputs"], np.int64)))
    snapshot.check(tx)
    return snapshot, np.concatenate(parts)


def _columns(ids: Iterable[str]) -> pa.ChunkedArray:
    left = iter(ids)
    pages = []
    while page := list(islice(left, PAGE)):
        pages.append(pa.array(page, pa.large_string()))
    return pa.chunked_array(pages, pa.large_string())
