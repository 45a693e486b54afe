"""The stateful part of a query on Spark: the engine, on Spark's arbitrary-state operator.

Spark has no length windows, no joins over them and no order among events of one time, and a query means the same
wherever it runs; so from the watermark on all operators are the library's own. Its state is in RocksDB, which Spark
checkpoints with the offsets, so an event takes part once whatever is killed. It is a list of parts and not one value:
Spark 4.0.0 may read a large value only in part (SPARK-53870), and lists go another way. A digest would tell.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from provenance_store.errors import JobError
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.functions import adopt
from provenance_store.streams.landing import COLUMNS, Telling
from provenance_store.streams.query import StreamQuery, functions_of

STATE = "engine"
_STATE_SCHEMA = "number int, part binary"
_PART_BYTES = 1 << 20
_DIGEST_BYTES = 16
# Rows as `landing` has them.
SCHEMA = (
    "kind string, stream string, timestamp long, sequence long, delay long, file string, position long, "
    "content string, parents string"
)


class QueryProcessor(StatefulProcessor):
    """Runs a query. It tells of events that took part and of those that are results or whose keys are stored."""

    def __init__(self, query: StreamQuery, *, capture: bool, keep: Keep | None = "needed") -> None:
        self._description = query.to_json()
        # Functions that the program registered are not known on workers, where only their modules are.
        self._functions = functions_of(query)
        self._capture = capture
        self._keep = keep

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called on the worker, once a batch."""
        self._handle = handle
        self._state = handle.getListState(STATE, _STATE_SCHEMA)
        adopt(self._functions)
        self._query = StreamQuery.from_json(self._description)
        self._told = Telling(self._query, capture=self._capture, keep=self._keep)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Take in what came, and go on to the watermark."""
        engine, rejected = self._engine(), []
        for frame in rows:
            arrivals, unread = _read(frame)
            rejected += unread
            engine.add(arrivals)
        yield from self._advance(engine, timerValues.getCurrentWatermarkInMs(), rejected)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """The watermark went on."""
        yield from self._advance(self._engine(), timerValues.getCurrentWatermarkInMs(), [])

    def close(self) -> None:
        """Nothing is held."""

    def _engine(self) -> Engine:
        kept = join_parts(self._state.get()) if self._state.exists() else None
        return Engine(self._query, kept, parents=self._capture)

    def _advance(self, engine: Engine, until: int, rejected: list[tuple[Any, ...]]) -> Iterator[pd.DataFrame]:
        rows = rejected + self._told.rows(engine, until)
        self._state.put(_part(engine.put_away()))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        # Where nothing comes any more the watermark may still go on, and events may be due.
        self._handle.registerTimer(max(until, 0) + 1)
        if rows:
            yield pd.DataFrame(rows, columns=list(COLUMNS))


def _part(state: bytes) -> list[tuple[int, bytes]]:
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


def _read(frame: pd.DataFrame) -> tuple[list[Arrival], list[tuple[Any, ...]]]:
    arrivals, rejected = [], []
    names = ["source", "time", "file", "position", "delay", "content"]
    for source, time, file, position, delay, content in zip(*(frame[name].tolist() for name in names), strict=True):
        if time is None or pd.isna(time):
            # Where it stands is enough to find it, and no copy is left that nobody would purge.
            rejected.append(("rejected", source, 0, 0, 0, file, position, None, None))
        else:
            arrivals.append(Arrival(source, int(time), (file, int(position)), int(delay), msgspec.json.decode(content)))
    return arrivals, rejected
