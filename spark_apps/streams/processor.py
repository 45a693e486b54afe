"""The stateful part of a query on Spark: the lanes of a bucket, on Spark's arbitrary-state operator.

Spark has no length windows, no joins over them and no order among events of one time, and a query means the same
wherever it runs; so from the watermark on all operators are the library's own. Workers write what a step makes: a step
that is done again writes the same files, so nothing has to pass through the driver. The state is in RocksDB, which
Spark checkpoints with the offsets, so an event takes part once whatever is killed. It is a list of parts and not one
value: Spark 4.0.0 may read a large value only in part (SPARK-53870), and lists go another way. A digest would tell.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from provenance_store.errors import JobError
from provenance_store.settings import Settings
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.functions import adopt
from provenance_store.streams.landing import rejected_line
from provenance_store.streams.lanes import Lanes
from provenance_store.streams.live_messages import LiveMessage
from provenance_store.streams.query import StreamQuery, functions_of
from provenance_store.streams.telling import Expiry

STATE = "lanes"
_STATE_SCHEMA = "number int, part binary"
_PART_BYTES = 1 << 20
_DIGEST_BYTES = 16
# Live messages, as Kafka takes them; without live provenance there are none.
SCHEMA = "key string, value binary"


class Bench:
    """What a worker needs to execute a run: told by the driver, and opened on the worker."""

    def __init__(
        self,
        settings: Settings,
        run: str,
        query: StreamQuery,
        *,
        begun: Begun,
        capture: bool = False,
        keep: Keep | None = "needed",
        live: Expiry | None = None,
        execution: type[Execution] = Execution,
    ) -> None:
        self._home = settings.home
        self._every, self._most = settings.streams.checkpoint_every, settings.streams.checkpoints
        self._run = run
        self._description = query.to_json()
        # Functions that the program registered are not known on workers, where only their modules are.
        self._functions = functions_of(query)
        self._begun = begun
        self._capture = capture
        self._keep = keep
        self._live = live
        self._execution = execution

    def open(self) -> Execution:
        """Make everything ready, on the worker."""
        adopt(self._functions)
        workshop = Workshop(self._home, self._run, StreamQuery.from_json(self._description))
        workshop.begun = self._begun
        return self._execution(
            workshop,
            capture=self._capture,
            keep=self._keep,
            live=self._live,
            checkpoint_every=self._every,
            checkpoints=self._most,
        )


def tell(messages: list[LiveMessage]) -> pd.DataFrame:
    """Live messages as rows."""
    return pd.DataFrame([(one.key, one.to_message().value) for one in messages], columns=["key", "value"])


class QueryProcessor(StatefulProcessor):
    """Runs a query."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called on the worker, once a batch."""
        self._handle = handle
        self._state = handle.getListState(STATE, _STATE_SCHEMA)
        self._execution = self._bench.open()

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Take in what came, and go on to the watermark."""
        lanes, rejected = self._lanes(key), []
        for frame in rows:
            arrivals, unread = _read(frame)
            rejected += unread
            lanes.add(arrivals)
        yield from self._advance(lanes, timerValues.getCurrentWatermarkInMs(), rejected)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """The watermark went on to where something is due."""
        yield from self._advance(self._lanes(key), timerValues.getCurrentWatermarkInMs(), [])

    def close(self) -> None:
        """Nothing is held."""

    def _lanes(self, key: Any) -> Lanes:
        kept = join_parts(self._state.get()) if self._state.exists() else None
        return self._execution.lanes(int(key[0]), kept)

    def _advance(self, lanes: Lanes, until: int, rejected: list[bytes]) -> Iterator[pd.DataFrame]:
        told = self._execution.step(lanes, until, rejected)
        due = lanes.due
        self._state.put(part(lanes.put_away()))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if due is not None:
            # Where nothing comes any more the watermark may still go on.
            self._handle.registerTimer(max(due, until, 0) + 1)
        if told:
            yield tell(told)


def part(state: bytes) -> list[tuple[int, bytes]]:
    """The rows that a state is kept as: a digest of it, and its parts."""
    parts = [state[first : first + _PART_BYTES] for first in range(0, len(state), _PART_BYTES)]
    return list(enumerate([blake2b(state, digest_size=_DIGEST_BYTES).digest(), *parts]))


def join_parts(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """The state that rows were made from; JobError where it is not whole."""
    ordered = sorted((int(number), bytes(part)) for number, part in rows)
    digest, *parts = (part for _, part in ordered)
    state = b"".join(parts)
    if blake2b(state, digest_size=_DIGEST_BYTES).digest() != digest:
        raise JobError("The state of the stream query is not as it was put away: begin its run anew, under another id.")
    return state


def _read(frame: pd.DataFrame) -> tuple[list[Arrival], list[bytes]]:
    arrivals, rejected = [], []
    names = ["source", "time", "file", "position", "delay", "content"]
    for source, time, file, position, delay, content in zip(*(frame[name].tolist() for name in names), strict=True):
        if time is None or pd.isna(time):
            rejected.append(rejected_line(source, file, int(position)))
        else:
            arrivals.append(Arrival(source, int(time), (file, int(position)), int(delay), msgspec.json.decode(content)))
    return arrivals, rejected
