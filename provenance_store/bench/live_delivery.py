"""Ways to deliver live provenance: told where it is made (ANK-1), or asked of a database in memory again and again.

Nothing holds back who feeds the database: that it has taken results does not mean that it has told of them.
"""

import sqlite3
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import Protocol

import msgspec

from provenance_store.streams.live import Edge, Element, Expired, Live, Result, SinkVertex, SourceVertex

_ENCODER = msgspec.json.Encoder()
_SCHEMA = """
CREATE TABLE results (number INTEGER PRIMARY KEY, id TEXT NOT NULL, time INTEGER NOT NULL, step INTEGER NOT NULL);
CREATE TABLE provenance (number INTEGER, source TEXT, time INTEGER, PRIMARY KEY (number, source)) WITHOUT ROWID;
CREATE TABLE told (source TEXT PRIMARY KEY, time INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX told_by_time ON told (time);
"""


class Delivery:
    """The file that elements are written to, and how long after they could have been told they were."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._waited = 0.0
        self.elements = 0
        self.results = 0

    def write(self, elements: list[Element], ready: list[float]) -> None:
        """Write elements, each with the moment since when it could have been."""
        self._file.write(_ENCODER.encode_lines(elements))
        self._file.flush()
        now = time.perf_counter()
        self._waited += sum(now - one for one in ready)
        self.elements += len(elements)
        self.results += sum(isinstance(one, SinkVertex) for one in elements)

    @property
    def waited(self) -> float:
        """The mean, in seconds."""
        return self._waited / max(1, self.elements)

    def close(self) -> None:
        """No more is written."""
        self._file.close()


class Way(Protocol):
    """What results are handed to, step by step."""

    def take(self, watermark: int, results: list[Result], made: float) -> None:
        """Take the results of a step that were made at this moment."""

    def finish(self) -> None:
        """Return when all is told."""


class Ank1:
    """Told where it is made."""

    def __init__(self, reach: int, delivery: Delivery) -> None:
        self._live = Live(reach)
        self._delivery = delivery

    def take(self, watermark: int, results: list[Result], made: float) -> None:
        """Tell it now."""
        elements = self._live.take(watermark, results) + self._live.advance(watermark)
        self._delivery.write(elements, [made] * len(elements))

    def finish(self) -> None:
        """All is told."""


class Database:
    """Put into a database, and told by whoever asks it."""

    def __init__(self, reach: int, delivery: Delivery, pause: float) -> None:
        self._reach = reach
        self._delivery = delivery
        self._pause = pause
        self._base = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._base.executescript(_SCHEMA)
        # Who feeds would take a lock again as soon as it has left it: who asks says so, and goes first.
        self._free = threading.Condition()
        self._asking = False
        self._number = 0
        self._asked = 0
        # Of each step the watermark and when it was made: what an element could have been told at.
        self._watermarks: list[int] = []
        self._made: list[float] = []
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def take(self, watermark: int, results: list[Result], made: float) -> None:
        """Put it in."""
        step = len(self._made)
        numbered = list(enumerate(results, start=self._number + 1))
        with self._free:
            self._free.wait_for(lambda: not self._asking)
            self._base.execute("BEGIN")
            self._base.executemany(
                "INSERT INTO results VALUES (?, ?, ?, ?)", [(at, one.id, one.time, step) for at, one in numbered]
            )
            self._base.executemany(
                "INSERT INTO provenance VALUES (?, ?, ?)", [(at, *source) for at, one in numbered for source in one[2]]
            )
            self._base.execute("COMMIT")
            self._number += len(results)
            self._watermarks.append(watermark)
            self._made.append(made)

    def finish(self) -> None:
        """Wait until all is told."""
        self._ended.set()
        self._thread.join()
        self._base.close()
        if self._failed is not None:
            raise self._failed

    def _poll(self) -> None:
        try:
            while True:
                ended = self._ended.wait(self._pause)
                self._ask()
                if ended and self._asked == self._number:
                    return
        except Exception as error:  # raised again where the thread is awaited
            self._failed = error

    def _ask(self) -> None:
        """What is new since the last time, as a graph."""
        if self._number == self._asked:
            return
        self._asking = True
        with self._free:
            until, steps = self._number, len(self._made)
            new = (self._asked, until)
            run = self._base.execute
            first = run(
                "INSERT OR IGNORE INTO told SELECT source, time FROM provenance WHERE number > ? AND number <= ? "
                "GROUP BY source RETURNING source, time",
                new,
            ).fetchall()
            sinks = run(
                "SELECT id, time, step FROM results WHERE number > ? AND number <= ? ORDER BY number", new
            ).fetchall()
            pairs = run(
                "SELECT id, source, step FROM provenance JOIN results USING (number) "
                "WHERE provenance.number > ? AND provenance.number <= ?",
                new,
            ).fetchall()
            at = self._watermarks[steps - 1]
            expired = run("DELETE FROM told WHERE time < ? RETURNING time, source", (at - self._reach,)).fetchall()
            self._asked = until
            self._asking = False
            self._free.notify()
        self._tell(at, first, sinks, pairs, sorted(expired))

    def _tell(
        self,
        at: int,
        first: list[tuple[str, int]],
        sinks: list[tuple[str, int, int]],
        pairs: list[tuple[str, str, int]],
        expired: list[tuple[int, str]],
    ) -> None:
        since: dict[str, float] = {}
        for _, source, step in pairs:
            since.setdefault(source, self._made[step])
        elements: list[Element] = [SourceVertex(at, source, moment) for source, moment in first]
        ready = [since[source] for source, _ in first]
        elements += [SinkVertex(at, result, moment) for result, moment, _ in sinks]
        elements += [Edge(at, result, source) for result, source, _ in pairs]
        elements += [Expired(at, result) for result, _, _ in sinks]
        ready += [self._made[step] for *_, step in (*sinks, *pairs, *sinks)]
        elements += [Expired(at, source) for _, source in expired]
        # A source of this time had expired by the first watermark that lay more than U behind it.
        steps = [bisect_right(self._watermarks, moment + self._reach) for moment, _ in expired]
        ready += [self._made[step] for step in steps]
        self._delivery.write(elements, ready)
