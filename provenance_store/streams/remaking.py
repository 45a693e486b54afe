"""Lanes of a run made anew without the first inputs that are gone, as if these had never come.

A lane is run from its beginning: where one event is missing, windows that count move, numbers fall, and what operators
remember is another. Its results are compared with those that stand. One of the same time and content stays what it was,
under its id; of the others, one of the same time takes the place of the old one; what is left over of the old vanishes,
and what is new goes into a file of its own. All keys of the lane are told anew, so what is inferred from them is true.
"""

import shutil
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.lake.contents import read_lines
from provenance_store.lake.layout import version_of
from provenance_store.lake.rewriting import sync
from provenance_store.streams.assertions import LANE, placed_table, streams_to_keep, write_table
from provenance_store.streams.engine import Arrival, Engine, Plan
from provenance_store.streams.event import END, Event, EventKey
from provenance_store.streams.folders import ASIDE, KEYS, read_facts, run_folder, write_facts
from provenance_store.streams.keys import Numbers
from provenance_store.streams.landing import record_of
from provenance_store.streams.query import Sink
from provenance_store.streams.runs import Open, StreamRun

# Lanes with so many events are read at once.
_AT_ONCE = 50_000


@dataclass(slots=True)
class Changes:
    """What becomes of the results in one version: by file within it, the positions of those removed and changed."""

    removed: dict[str, list[int]] = field(default_factory=dict)
    changed: dict[str, dict[int, bytes]] = field(default_factory=dict)
    appended: list[bytes] = field(default_factory=list)
    # Of those removed, the ones that a person named.
    deleted: int = 0
    _end: int = 0

    def append(self, line: bytes) -> int:
        """The position that a new result gets."""
        self.appended.append(line)
        begin, self._end = self._end, self._end + len(line) + 1
        return begin


class _Old(NamedTuple):
    """A result as it was told: its record, and what stands there; None where it is gone."""

    file: str
    position: int
    timestamp: int
    line: bytes | None
    is_named: bool


class _Line(msgspec.Struct, frozen=True):
    content: msgspec.Raw


class Remaking:
    """Makes lanes of a finished run anew.

    `versions` are those of each sink's dataset that may change; what is new in them goes into files called `new`.
    Results that people `named`, by their ids, stay away whatever is made. First inputs are read where `open_version`
    says.
    """

    def __init__(
        self,
        run: StreamRun,
        lanes: Sequence[int],
        *,
        versions: Mapping[str, Sequence[str]],
        new: str,
        named: Collection[str] = (),
        open_version: Open | None = None,
    ) -> None:
        self._run = run
        self._lanes = sorted(lanes)
        self._versions = versions
        self._new = new
        self._named = named
        self._open = open_version
        self._plan = Plan(run.query)
        self._changes: dict[tuple[str, str], Changes] = {}
        self._homes = {sink.dataset: self._home(sink) for sink in run.query.sinks}

    def run(self, draft: Path) -> dict[tuple[str, str], Changes]:
        """What becomes of results, by dataset and version; all keys of the run, as they will be, go into a folder."""
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        last = self._keep_others(draft)
        for number, lanes in enumerate(self._parts(), start=last + 1):
            told: dict[str, list[tuple[int, EventKey, tuple[str, int]]]] = {}
            for lane, streams, places in self._make(lanes):
                for name, rows in self._tell(lane, streams, places):
                    told.setdefault(name, []).extend((lane, *row) for row in rows)
            for name, laned in told.items():
                lanes_of = [lane for lane, _, _ in laned] if self._run.query.by else None
                table = placed_table([(key, place) for _, key, place in laned], lanes_of)
                write_table(draft / name / f"part-purged-{number:06}.parquet", table)
        return self._changes

    def _keep_others(self, draft: Path) -> int:
        """The keys of all other lanes, as they are; the number of the last step that is told of."""
        last = 0
        for file in sorted((self._run.folder / KEYS).glob("*/[!.]*.parquet")):
            last = max(last, int(file.stem.rpartition("-")[2]))
            target = draft / file.parent.name / file.name
            if self._run.query.by:
                table = pl.read_parquet(file)
                kept = table.filter(~pl.col(LANE).is_in(self._lanes))
                if len(kept) == len(table):
                    target.parent.mkdir(exist_ok=True)
                    shutil.copyfile(file, target)
                elif len(kept):
                    write_table(target, kept.to_arrow().cast(pq.read_schema(file)))
        return last

    def _parts(self) -> Iterator[list[int]]:
        """The lanes, as many at a time as have not too many events."""
        tables = [self._run.table(source.name) for source in self._run.query.sources]
        counts = pl.concat([table[LANE] for table in tables]).value_counts().rows()
        came, end, ends = dict(counts), 0, {}
        for lane in self._lanes:
            end += came.get(lane, 0)
            ends[lane] = end // _AT_ONCE
        for _, lanes in groupby(self._lanes, key=lambda lane: ends[lane]):
            yield list(lanes)

    def _make(
        self, lanes: Sequence[int]
    ) -> Iterator[tuple[int, dict[str, list[Event]], dict[EventKey, tuple[str, int]]]]:
        """Of each lane, all its events, and the places of those that came from elsewhere."""
        arrivals: dict[int, list[Arrival]] = {}
        places: dict[tuple[str, int, int], tuple[str, int]] = {}
        for source in self._run.query.sources:
            table = self._run.table(source.name)
            rows = np.flatnonzero(table[LANE].is_in(list(lanes)).to_numpy())
            found = self._run.standing(source.name, rows, self._open)
            for row, told in zip(rows.tolist(), table[rows].iter_rows(named=True), strict=True):
                if row in found:
                    # Of one time, they take part as they did.
                    origin = (source.name, told["sequence"])
                    arrivals.setdefault(told[LANE], []).append(
                        Arrival(source.name, told["timestamp"], origin, told["delay"], found[row])
                    )
                    places[source.name, told[LANE], told["sequence"]] = (told["file"], told["position"])
        for lane in lanes:
            engine = Engine(self._plan)
            engine.add(arrivals.get(lane, ()))
            entered, made = engine.advance(END)
            streams: dict[str, list[Event]] = {source.name: [] for source in self._run.query.sources} | made
            stand: dict[EventKey, tuple[str, int]] = {}
            for event, (source_name, number) in entered:
                streams[source_name].append(event)
                stand[event.key] = places[source_name, lane, number]
            yield lane, streams, stand

    def _tell(
        self, lane: int, streams: Mapping[str, list[Event]], places: Mapping[EventKey, tuple[str, int]]
    ) -> Iterator[tuple[str, list[tuple[EventKey, tuple[str, int]]]]]:
        """The keys of a lane, under the names that they are stored by; its results change on the way."""
        query = self._run.query
        sinks = {sink.stream for sink in query.sinks}
        sources = {source.name for source in query.sources}
        folders = {path.name for path in (self._run.folder / KEYS).glob("*")}
        for name in sorted({*streams_to_keep(query, "needed"), *(folders & streams.keys())}):
            if name in sources or name in folders or name not in sinks:
                yield name, [(event.key, places.get(event.key, ("", 0))) for event in streams[name]]
        for sink in query.sinks:
            yield f"{sink.stream}@{sink.dataset}", list(self._place(sink, lane, streams[sink.stream]))

    def _place(self, sink: Sink, lane: int, new: list[Event]) -> Iterator[tuple[EventKey, tuple[str, int]]]:
        """Results beside the places of their records."""
        old = self._told_before(sink, lane)
        lines = [record_of(event) for event in new]
        pairs = _match(old, [event.key.timestamp for event in new], lines)
        taken = {at for at in pairs if at is not None}
        for at, one in enumerate(old):
            if one.line is not None and (one.is_named or at not in taken):
                changes, within = self._changes_of(sink, one.file)
                changes.removed.setdefault(within, []).append(one.position)
                changes.deleted += one.is_named
        for event, line, pair in zip(new, lines, pairs, strict=True):
            if pair is None:
                version = self._homes[sink.dataset](event.key.triggered)
                position = self._changes.setdefault((sink.dataset, version), Changes()).append(line)
                yield event.key, (f"{version}/{self._new}", position)
                continue
            one = old[pair]
            if one.line is not None and not one.is_named and one.line != line:
                changes, within = self._changes_of(sink, one.file)
                changes.changed.setdefault(within, {})[one.position] = line
            yield event.key, (one.file, one.position)

    def _told_before(self, sink: Sink, lane: int) -> list[_Old]:
        """The results of a lane in their order; without those that went because of what they were made from."""
        table = self._run.table(f"{sink.stream}@{sink.dataset}").filter(pl.col(LANE) == lane)
        rows = table.select("file", "position", "timestamp").rows()
        lines = read_results(self._run.lake, sink.dataset, [(file, at) for file, at, _ in rows])
        ids = self._run.ids_of(sink, table)
        old = [
            _Old(file, at, time, lines.get((file, at)), one in self._named)
            for (file, at, time), one in zip(rows, ids, strict=True)
        ]
        return [one for one in old if one.line is not None or one.is_named]

    def _changes_of(self, sink: Sink, file: str) -> tuple[Changes, str]:
        version, _, within = file.partition("/")
        if version not in self._versions[sink.dataset]:
            raise InputError(f"Results in {sink.dataset}/{version} would change, which nobody planned: plan anew.")
        return self._changes.setdefault((sink.dataset, version), Changes()), within

    def _home(self, sink: Sink) -> "_Home":
        versions = self._versions.get(sink.dataset, ())
        table = self._run.table(f"{sink.stream}@{sink.dataset}").select(
            (pl.col("timestamp") - pl.col("delay")).alias("triggered"),
            pl.col("file").str.split("/").list.first().alias("version"),
        )
        told = table.filter(pl.col("version").is_in(list(versions))).sort("triggered", maintain_order=True)
        return _Home(told["triggered"].to_numpy(), told["version"], sorted(versions))


@dataclass(frozen=True, slots=True)
class _Home:
    """The version that a new result of a sink belongs to: that of the last which was made no later."""

    triggered: Numbers
    versions: pl.Series
    every: list[str]

    def __call__(self, time: int) -> str:
        if not len(self.versions):
            return self.every[-1]
        at = int(np.searchsorted(self.triggered, time, side="right")) - 1
        return str(self.versions[max(at, 0)])


def _match(old: Sequence[_Old], times: Sequence[int], lines: Sequence[bytes]) -> list[int | None]:
    """Of each new result the old one that it is, or in whose place it comes."""
    pairs: list[int | None] = [None] * len(times)
    same: dict[tuple[int, bytes], deque[int]] = {}
    for at, one in enumerate(old):
        if one.line is not None:
            same.setdefault((one.timestamp, _content(one.line)), deque()).append(at)
    for at, (time, line) in enumerate(zip(times, lines, strict=True)):
        if waiting := same.get((time, _content(line))):
            pairs[at] = waiting.popleft()
    taken = set(pairs)
    left: dict[int, deque[int]] = {}
    for at, one in enumerate(old):
        if at not in taken:
            left.setdefault(one.timestamp, deque()).append(at)
    for at, time in enumerate(times):
        if pairs[at] is None and (waiting := left.get(time)):
            pairs[at] = waiting.popleft()
    return pairs


def _content(line: bytes) -> bytes:
    return bytes(msgspec.json.decode(line, type=_Line).content)


def read_results(lake: Path, dataset: str, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """The records of results that stand in the lake, by file within the dataset and position."""
    found: dict[tuple[str, int], bytes] = {}
    for file, group in groupby(sorted(places), key=lambda place: place[0]):
        name, _, within = file.partition("/")
        version, positions = version_of(lake, dataset, name), [position for _, position in group]
        if (version.path / within).is_file():
            lines = read_lines(version, within, positions)
            found |= {(file, at): line for at, line in zip(positions, lines, strict=True) if line is not None}
    return found


def draft_of(lake: Path, run: str, purge: str) -> Path:
    """Where the keys of a run are drafted."""
    return run_folder(lake, run) / f".{KEYS}.{purge}"


def discard(lake: Path, run: str, purge: str) -> None:
    """Remove keys that were drafted."""
    shutil.rmtree(draft_of(lake, run, purge), ignore_errors=True)


def switch(lake: Path, run: str, purge: str) -> None:
    """Put drafted keys in the place of a run's; killed on the way and called again, it goes on."""
    folder, draft = run_folder(lake, run), draft_of(lake, run, purge)
    aside = folder / ASIDE
    if draft.exists():
        for path in [*draft.rglob("*"), draft]:
            sync(path)
        if (folder / KEYS).exists():
            shutil.rmtree(aside, ignore_errors=True)
            (folder / KEYS).rename(aside)
        draft.rename(folder / KEYS)
        sync(folder)
    facts = read_facts(lake, run)
    if facts is None:
        raise InputError(f"{folder} no longer tells of run {run!r}: restore it.")
    if purge not in facts.purged:
        write_facts(lake, msgspec.structs.replace(facts, purged=(*facts.purged, purge)))
    shutil.rmtree(aside, ignore_errors=True)
