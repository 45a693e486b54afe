"""What an executed query tells, and how it lands: results and first inputs as records, keys as assertions.

Every engine that executes queries tells rows of one shape, a batch at a time.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.streams.assertions import Keep, streams_to_keep
from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.folders import RunFacts, Workshop
from provenance_store.streams.query import StreamQuery

# After all times: what comes to an end is taken as if nothing could come any more.
END = 1 << 60
PART_END = "end"
# `kind`: an event that took part (`in`), one that was made (`made`), or what is no event (`rejected`).
COLUMNS = ("kind", "stream", "timestamp", "sequence", "delay", "file", "position", "content", "parents")


class Telling:
    """What is told of an engine's progress: rows of the schema above."""

    def __init__(self, query: StreamQuery, *, capture: bool, keep: Keep | None = "needed") -> None:
        self._landed = {source.name for source in query.sources if source.topic is not None}
        self._sinks = {sink.stream for sink in query.sinks}
        # Without assertions there are only results, and no provenance: to compare with.
        self._kept = self._sinks | (set(streams_to_keep(query, keep)) if keep else set())
        self._capture = capture

    def rows(self, engine: Engine, until: int) -> list[tuple[Any, ...]]:
        """Go on to a time; all there is to tell of it."""
        entered, made = engine.advance(until)
        rows: list[tuple[Any, ...]] = []
        for event, (file, position) in entered:
            key = event.key
            if key.stream not in self._kept:
                continue
            given = key.stream in self._landed or key.stream in self._sinks
            content = _encode(event.content) if given else None
            rows.append(("in", key.stream, key.timestamp, key.sequence, key.delay, file, position, content, None))
        for stream, events in made.items():
            if stream in self._kept or self._capture:
                rows += [self._made(event) for event in events]
        return rows

    def _made(self, event: Event) -> tuple[Any, ...]:
        key = event.key
        content = _encode(event.content) if key.stream in self._sinks else None
        parents = _encode([[one.stream, one.sequence] for one in event.parents]) if self._capture else None
        return "made", key.stream, key.timestamp, key.sequence, key.delay, None, None, content, parents


class Landing:
    """Writes what a batch tells into the run's folder."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        query = workshop.query
        self._landed = {source.name: source.dataset for source in query.sources if source.topic is not None}
        self._sinks: dict[str, list[str]] = {}
        for sink in query.sinks:
            self._sinks.setdefault(sink.stream, []).append(sink.dataset)

    def take(self, part: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Land a batch; the same one again writes the same files again."""
        streams: dict[str, list[tuple[Any, ...]]] = {}
        rejected = []
        for row in rows:
            if row[0] == "rejected":
                rejected.append(msgspec.json.encode(dict(zip(COLUMNS, row, strict=True))))
            else:
                streams.setdefault(row[1], []).append(row)
        if rejected:
            self._workshop.reject(part, rejected)
        for stream, told in streams.items():
            self._keep(stream, part, told)

    def _keep(self, stream: str, part: str, rows: list[tuple[Any, ...]]) -> None:
        keys = [EventKey(time, number, stream, delay) for _, _, time, number, delay, *_ in rows]
        places = [(file or "", position or 0) for *_, file, position, _, _ in rows]
        if stream in self._landed:
            places = self._workshop.land(self._landed[stream], part, [row[7].encode() for row in rows])
        for dataset in self._sinks.get(stream, ()):
            lines = [_record(key, row[7]) for key, row in zip(keys, rows, strict=True)]
            landed = self._workshop.land(dataset, part, lines)
            self._workshop.keep(f"{stream}@{dataset}", part, list(zip(keys, landed, strict=True)))
        if rows[0][0] == "in" or stream not in self._sinks:
            self._workshop.keep(stream, part, list(zip(keys, places, strict=True)))
        if rows[0][8] is not None:
            edges = [
                (key.sequence, *parent)
                for key, row in zip(keys, rows, strict=True)
                for parent in msgspec.json.decode(row[8])
            ]
            self._workshop.capture(stream, part, edges)


def _record(key: EventKey, content: str) -> bytes:
    """An event as a record: its key, and its content as it is."""
    head = msgspec.json.encode(
        {"timestamp": key.timestamp, "sequence": key.sequence, "stream": key.stream, "delay": key.delay}
    )
    return head[:-1] + b',"content":' + content.encode() + b"}"


def run_locally(
    home: Path, lake: Path, query: StreamQuery, run: str, batches: Iterable[tuple[Sequence[Arrival], int]]
) -> dict[str, Path]:
    """Execute a query here and to its end, on arrivals with the watermark behind each batch; the versions made."""
    workshop = Workshop(home, run, query)
    workshop.open()
    engine, told, landing = Engine(query), Telling(query, capture=False), Landing(workshop)
    for number, (arrivals, until) in enumerate(batches):
        engine.add(arrivals)
        landing.take(f"{number:05}", told.rows(engine, until))
    landing.take(PART_END, told.rows(engine, END))
    return workshop.finish(lake, RunFacts(run=run, query=query.name, until=END, late=engine.late))


def _encode(content: Any) -> str:
    return msgspec.json.encode(content).decode()
