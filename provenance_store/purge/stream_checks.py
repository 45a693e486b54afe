"""Whether results of streams that were made anew are what the reference makes of the events that are left.

The reference executes a query by its definitions, on whole streams, and shares nothing with what made them anew but
the operators' functions. It is slow: only the lanes that were made anew are looked at.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from provenance_store.lake import layout
from provenance_store.lake.contents import all_lines
from provenance_store.purge.findings import Finding
from provenance_store.purge.plan import Step
from provenance_store.streams.assertions import LANE
from provenance_store.streams.event import END, Event, EventKey
from provenance_store.streams.query import Sink
from provenance_store.streams.reference import execute
from provenance_store.streams.runs import StreamRun


def check_stream(lake: Path, steps: Sequence[Step], *, deleted: int, is_last: bool) -> Finding:
    """Look at the results of one run in one dataset. Purges took `deleted` of them out; `is_last`: none came later."""
    first = steps[0]
    name = f"{', '.join(step.reference for step in steps)} is what its inputs give"
    run = StreamRun(lake, first.run or "")
    sink = next(one for one in run.query.sinks if one.dataset == first.dataset)
    lanes = sorted({lane for step in steps for lane in step.lanes})
    sources = {source.name: _read_events(run, source.name, lanes) for source in run.query.sources}
    events, gone = (sum(counts) for counts in zip(*((len(s), g) for s, g in sources.values()), strict=True))
    if gone and not is_last:
        return Finding(
            name=name, passed=None, counts={"gone": gone},
            sentence=f"Not checked: later purges took {gone:,} events out of the lanes that were made anew.",
        )  # fmt: skip
    there, strangers = _read_results(lake, run, sink, steps, lanes)
    expected: Counter[bytes] = Counter()
    for lane in lanes:
        came = {source: [event for at, event in told if at == lane] for source, (told, _) in sources.items()}
        streams = execute(run.query, came, END)
        expected.update(_write(event.key, event.content) for event in streams[sink.stream])
    unexpected, lacking = (there - expected).total(), (expected - there).total()
    as_planned = not is_last or (events == first.reads and not gone)
    unlike = "" if as_planned else f" The keys tell of {events + gone:,} events, and {first.reads:,} should be left."
    purged = f", {deleted:,} of which purges deleted" if deleted else ""
    return Finding(
        name=name,
        passed=not unexpected and lacking <= deleted and not strangers and as_planned,
        counts={
            "lanes": len(lanes),
            "events": events,
            "records": there.total(),
            "unexpected": unexpected,
            "missing": lacking,
            "unknown": strangers,
            "deleted": deleted,
        },
        sentence=(
            f"Of {there.total():,} results in {len(lanes):,} lanes that were made anew, {unexpected:,} are not what "
            f"the reference makes of the {events:,} events that are left, and {lacking:,} are missing{purged}; "
            f"{strangers:,} records are told of by no key.{unlike}"
        ),
    )


def _read_events(run: StreamRun, source: str, lanes: Sequence[int]) -> tuple[list[tuple[int, Event]], int]:
    """The events of lanes that stand in the lake, counted anew in the order of time, and how many do not."""
    rows = np.flatnonzero(run.table(source)[LANE].is_in(list(lanes)).to_numpy())
    found = run.standing(source, rows)
    told = run.table(source)[rows].with_columns(pl.Series("row", rows, pl.Int64)).sort(LANE, "timestamp", "sequence")
    counts: Counter[int] = Counter()
    events = []
    for one in told.iter_rows(named=True):
        if one["row"] in found:
            lane = one[LANE]
            counts[lane] += 1
            key = EventKey(one["timestamp"], counts[lane], source, one["delay"])
            events.append((lane, Event(key, found[one["row"]])))
    return events, len(rows) - len(events)


def _read_results(
    lake: Path, run: StreamRun, sink: Sink, steps: Sequence[Step], lanes: Sequence[int]
) -> tuple[Counter[bytes], int]:
    """The results of lanes as they stand in all versions of the run, and how many records no key tells of."""
    table = run.table(f"{sink.stream}@{sink.dataset}")
    lane_of = {(file, at): lane for file, at, lane in table.select("file", "position", LANE).rows()}
    chosen, versions = set(lanes), set(table["file"].str.split("/").list.first()) | {step.version for step in steps}
    there: Counter[bytes] = Counter()
    strangers = 0
    for version in layout.list_versions(lake, sink.dataset):
        if version.name not in versions:
            continue
        for path in version.files():
            file = version.name_of(path)
            for positions, lines in all_lines(version, file):
                for position, line in zip(positions.tolist(), lines, strict=True):
                    lane = lane_of.get((f"{version.name}/{file}", position))
                    strangers += lane is None
                    if lane in chosen:
                        there[_canonical(msgspec.json.decode(line))] += 1
    return there, strangers


def _write(key: EventKey, content: Any) -> bytes:
    plain = msgspec.json.decode(msgspec.json.encode(content))
    told = {"timestamp": key.timestamp, "sequence": key.sequence, "stream": key.stream, "delay": key.delay}
    return _canonical({**told, "content": plain})


def _canonical(record: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(record, order="sorted")
