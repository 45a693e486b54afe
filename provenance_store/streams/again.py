"""Results made again, by their ids, and compared with what stands in the lake."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake.layout import version_of
from provenance_store.lake.records import read_line
from provenance_store.model.ids import RecordId
from provenance_store.streams.event import Event
from provenance_store.streams.runs import StreamRun

_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Again:
    """The replay table, and the ids of results that came back as others."""

    table: list[tuple[int, str, list[Event]]]
    different: list[str]

    def shorten(self, events: Sequence[Event]) -> str:
        """The last of them, as much as fits a line."""
        text = msgspec.json.encode(events[-1].content).decode() if events else ""
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        rows = [{"index": index, "stream": stream, "events": events} for index, stream, events in self.table]
        return {"table": msgspec.to_builtins(rows), "different": self.different}


def make_again(lake: Path, ids: Sequence[str]) -> Again:
    """Replay results of one sink of one run."""
    parts = [RecordId.parse(one) for one in ids]
    if len({(part.dataset, part.version) for part in parts}) != 1:
        raise InputError("Give results of one version: a replay is of one sink of one run.")
    version = version_of(lake, parts[0].dataset, parts[0].version)
    run = version.marker().get("run")
    if "stream" not in version.marker() or not isinstance(run, str):
        raise InputError(f"{version.reference} was not made by a stream query: only what streams made is replayed.")
    table: dict[str, list[Event]] = {}
    different = []
    for lane in StreamRun(lake, run).replay(parts[0].dataset, ids):
        for _, stream, events in lane.made.table():
            table.setdefault(stream, []).extend(events)
        for one, place in lane.places.items():
            recorded = msgspec.json.decode(read_line(lake, one))["content"]
            if msgspec.to_builtins(lane.made.contents[lane.stream][place]) != recorded:
                different.append(one)
    rows = [(at, stream, events) for at, (stream, events) in enumerate(table.items(), start=1)]
    return Again(rows, different)
