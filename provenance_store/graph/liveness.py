"""Whether records may still lead to results of stream queries that are running.

A source that a run has told of is live in it until the run says that it has expired. Of a record that a run has not
told of, because it led to no result yet, its event time would tell; as that stands in the record alone, it is not
surely expired in a run that reads its dataset, before the run has ended.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
from neo4j import ManagedTransaction

from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.schema import check_version, read_version
from provenance_store.model.ids import LAKE_PREFIX, version_id_of
from provenance_store.streams.event import END

PART = 10_000
# `unsure` is not surely expired. From the one that says least of the future to the one that says most.
State: TypeAlias = Literal["unknown", "expired", "unsure", "live"]
_ORDER: tuple[State, ...] = ("unknown", "expired", "unsure", "live")


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """A stream query that goes on: times in milliseconds, `reach` none where it is unbounded.

    A record whose event time lies before `watermark - reach` leads to nothing any more.
    """

    run: str
    query: str
    revision: int
    watermark: int | None
    reach: int | None
    # The versions that sources it has told of are in, and what it says that it reads: versions, or whole datasets.
    reads: list[str]

    @property
    def has_ended(self) -> bool:
        """Whether it has told its last, and only its finished graph is missing."""
        return self.watermark is not None and self.watermark >= END

    def may_read(self, record: str) -> bool:
        """Whether a record may be among its sources: of a version that it reads, or a new one of the same dataset.

        What it lands itself, from topics, is in versions of its own, and nobody else's are read then.
        """
        version = version_id_of(record)
        if version is None:
            return False
        dataset, _, name = version.partition("/")
        if dataset in self.reads:
            return True
        others = [one.partition("/")[2] for one in self.reads if one.partition("/")[0] == dataset]
        return bool(others) and (self._is_own(name) or not all(map(self._is_own, others)))

    def _is_own(self, version: str) -> bool:
        return version == self.run or version.startswith(f"{self.run}.")


class InRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a record is in one run: `time` is its event time, where the run told it."""

    run: str
    query: str
    state: State
    time: int | None
    watermark: int | None
    reach: int | None


class Liveness(msgspec.Struct, frozen=True):
    """What a record is in the runs that go on; in none of them it is unknown to live runs."""

    id: str
    runs: list[InRun]

    @property
    def state(self) -> State:
        """Of what it is in any run, that which says most of the future."""
        return max((one.state for one in self.runs), key=_ORDER.index, default="unknown")


class LiveCount(msgspec.Struct, kw_only=True):
    """How many of many records are what in one run, and for each state one of them."""

    run: str
    query: str
    counts: dict[State, int] = {}
    examples: dict[State, str] = {}


def find_liveness(connection: Connection, ids: Iterable[str]) -> Iterator[Liveness]:
    """What each record is in the runs that go on, in the order of the ids."""
    runs = connection.read(find_live_runs)
    distinct = list(dict.fromkeys(ids))
    for begin in range(0, len(distinct), PART):
        part = distinct[begin : begin + PART]
        yield from connection.read(lambda tx, part=part: _look(tx, runs, part)) if runs else map(_in_none, part)  # type: ignore[misc]


def count_liveness(connection: Connection, ids: Sequence[str]) -> list[LiveCount]:
    """The same by numbers: nothing of runs in which none of the records is anything."""
    counted: dict[str, LiveCount] = {}
    if not connection.read(find_live_runs):
        return []
    for found in find_liveness(connection, ids):
        for one in found.runs:
            count = counted.setdefault(one.run, LiveCount(run=one.run, query=one.query))
            count.counts[one.state] = count.counts.get(one.state, 0) + 1
            count.examples.setdefault(one.state, found.id)
    return [counted[run] for run in sorted(counted)]


def find_live_runs(tx: ManagedTransaction) -> list[LiveRun]:
    """The stream queries that go on, and are followed."""
    check_version(read_version(tx))
    return [msgspec.convert(row.data(), LiveRun) for row in tx.run(cypher("live_runs"))]


def _in_none(record: str) -> Liveness:
    return Liveness(record, [])


def _look(tx: ManagedTransaction, runs: Sequence[LiveRun], ids: Sequence[str]) -> list[Liveness]:
    rows = tx.run(cypher("live_told"), ids=list(ids), runs=[run.run for run in runs])
    told = {(record, run): (time, is_live) for record, run, time, is_live in rows}
    found = []
    for record in ids:
        of_it = [_in_run(run, record, told.get((record, run.run))) for run in runs]
        found.append(Liveness(record, [one for one in of_it if one.state != "unknown"]))
    return found


def _in_run(run: LiveRun, record: str, told: tuple[int | None, bool] | None) -> InRun:
    state: State
    if told is not None:
        state = "live" if told[1] else "expired"
    elif not (record.startswith(LAKE_PREFIX) and run.may_read(record)):
        state = "unknown"
    else:
        state = "expired" if run.has_ended else "unsure"
    return InRun(
        run=run.run,
        query=run.query,
        state=state,
        time=told[0] if told else None,
        watermark=run.watermark,
        reach=run.reach,
    )
