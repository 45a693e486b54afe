"""How what happens in a query lands: results and first inputs as records, keys as assertions, all by who executes it.

Of each step of a bucket there are files of their own, and the same step done again writes the same files again.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from provenance_store.model.ids import file_prefix
from provenance_store.streams.assertions import Keep, streams_to_keep
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.folders import Workshop
from provenance_store.streams.lanes import Lanes, Move
from provenance_store.streams.trails import Leaf


class _Row(NamedTuple):
    """An event with its lane, and where the record of it came from; of one that was made, nowhere."""

    lane: int
    event: Event
    origin: tuple[str, int] | None


class Landed(NamedTuple):
    """The record of a result: its id, its event, and the move that made it."""

    id: str
    event: Event
    move: Move


class Landing:
    """Writes what happened in steps into a run's folder.

    With `capture` the parents of every event are stored too, if the plan has them. What is kept may be more than is
    needed, or nothing: to compare with. With `trace`, engines are told where the records of first inputs are.
    """

    def __init__(
        self, workshop: Workshop, *, capture: bool = False, keep: Keep | None = "needed", trace: bool = False
    ) -> None:
        self._workshop = workshop
        self._capture = capture
        query = workshop.query
        self._landed = {source.name: source.dataset for source in query.sources if source.lands}
        self._cached = {source.name: source.topic for source in query.sources if source.cache is not None}
        self._read = {source.name: source.dataset for source in query.sources}
        self._sinks: dict[str, list[str]] = {}
        for sink in query.sinks:
            self._sinks.setdefault(sink.stream, []).append(sink.dataset)
        # Without assertions there are only results, and no provenance.
        self._kept = self._sinks.keys() | (set(streams_to_keep(query, keep)) if keep else set())
        self._told = self._kept | (self._read.keys() if trace else set())
        self._trace = trace

    def take(self, lanes: Lanes, moves: Sequence[Move]) -> list[Landed]:
        """Land a step; its results, lane by lane in the order of making, if there are trails to trace them by."""
        part, version = f"{lanes.bucket:03}-{lanes.step:06}", self._workshop.version_at(lanes.until)
        streams: dict[str, list[tuple[Move, _Row]]] = {}
        for move in moves:
            for event, origin in move.entered:
                streams.setdefault(event.key.stream, []).append((move, _Row(move.lane, event, origin)))
            for stream, events in move.made.items():
                streams.setdefault(stream, []).extend((move, _Row(move.lane, event, None)) for event in events)
        landed: list[Landed] = []
        for stream, rows in streams.items():
            if rows and (stream in self._told or self._capture):
                landed += self._land(stream, version, part, rows)
        return landed

    def reject(self, lanes: Lanes, lines: Sequence[bytes]) -> None:
        """Note what came and is no event."""
        if lines:
            self._workshop.reject(f"{lanes.bucket:03}-{lanes.step:06}", lines)

    def source_id(self, source: str, leaf: Leaf) -> str:
        """The id of the record of a source's event."""
        return f"{_prefix(self._read[source], leaf.file)}{leaf.position}"

    def _land(self, stream: str, version: str, part: str, told: list[tuple[Move, _Row]]) -> list[Landed]:
        workshop, rows = self._workshop, [row for _, row in told]
        lanes, keys = [row.lane for row in rows], [row.event.key for row in rows]
        places = [row.origin or ("", 0) for row in rows]
        if stream in self._landed:
            lines = [msgspec.json.encode(row.event.content) for row in rows]
            places = workshop.land(self._landed[stream], version, part, lines)
        if stream in self._cached:
            places = [(f"{self._cached[stream]}/{file}", position) for file, position in places]
            workshop.cache(stream).write(part, places, [msgspec.json.encode(row.event.content) for row in rows])
        if self._trace and stream in self._read:
            for (move, row), place in zip(told, places, strict=True):
                move.engine.enter(stream, row.event.key.sequence, Leaf(row.event.key.timestamp, *place))
        landed: list[Landed] = []
        for dataset in self._sinks.get(stream, ()):
            records = workshop.land(dataset, version, part, [record_of(row.event) for row in rows])
            workshop.keep(f"{stream}@{dataset}", part, list(zip(keys, records, strict=True)), lanes)
            prefix = file_prefix(dataset, version, f"part-{part}.jsonl")
            landed += [
                Landed(f"{prefix}{at}", row.event, move) for (move, row), (_, at) in zip(told, records, strict=True)
            ]
        if stream in self._kept and (stream in self._read or stream not in self._sinks):
            workshop.keep(stream, part, list(zip(keys, places, strict=True)), lanes)
        if self._capture and stream not in self._read:
            edges = [(row.lane, row.event.key.sequence, one) for row in rows for one in row.event.parents]
            workshop.capture(
                stream, part, [(n, one.stream, one.sequence) for _, n, one in edges], [lane for lane, *_ in edges]
            )
        return landed


@lru_cache(maxsize=4096)
def _prefix(dataset: str, path: str) -> str:
    """How the ids of records in a file begin, by its path in the dataset: most sources of a result share one."""
    version, _, file = path.partition("/")
    return file_prefix(dataset, version, file)


def record_of(event: Event) -> bytes:
    """An event as a record: its key, and its content as it is."""
    key: EventKey = event.key
    head = msgspec.json.encode(
        {"timestamp": key.timestamp, "sequence": key.sequence, "stream": key.stream, "delay": key.delay}
    )
    return head[:-1] + b',"content":' + msgspec.json.encode(event.content) + b"}"


def rejected_line(source: str, file: str, position: int) -> bytes:
    """What is noted of what came and is no event: where it stands, and no copy that nobody would purge."""
    told: dict[str, Any] = {"source": source, "file": file, "position": position}
    return msgspec.json.encode(told)
