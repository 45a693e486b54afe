"""Lanes made anew without some first inputs: the lake is what a run without them makes, ids stay, and keys are true."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.lake.drafts import begin_draft, discard, draft_of, switch
from provenance_store.lake.layout import Version, new_version, version_of
from provenance_store.lake.records import lines_of
from provenance_store.lake.rewriting import LineEdit, rewrite
from provenance_store.model.files import write_whole
from provenance_store.streams import remaking
from provenance_store.streams.assertions import LANE
from provenance_store.streams.engine import Arrival
from provenance_store.streams.event import END, Event, EventKey
from provenance_store.streams.execution import run_locally
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import Process
from provenance_store.streams.query import StreamQuery, lane_key
from provenance_store.streams.reference import ancestors, execute
from provenance_store.streams.remaking import Changes, Remaking
from provenance_store.streams.runs import Links, StreamRun
from tests.property.stream_queries import Case, cases

RUN = "run"


@register("test.running-sum")
def _running_sum(memory: Any, content: Any) -> tuple[Any, list[Any]]:
    total = (memory or 0) + content["v"]
    return total, [{"v": total, "time": content["time"]}] if total % 3 else []


@dataclass(frozen=True)
class World:
    """A lake with the files of a query's sources, and a run of it on them."""

    home: Path
    query: StreamQuery

    @property
    def lake(self) -> Path:
        return self.home / "lake"

    def land(self, batches: Sequence[tuple[list[Arrival], int]]) -> list[tuple[list[Arrival], int]]:
        """Write all arrivals of file sources into the lake, and let them come from there."""
        placed: dict[int, tuple[str, int]] = {}
        for source in self.query.sources:
            if source.topic is not None:
                continue
            at, lines = 0, []
            for arrivals, _ in batches:
                for one in arrivals:
                    if one.source == source.name:
                        lines.append(msgspec.json.encode(one.content) + b"\n")
                        placed[one.origin[1]] = ("v/part.jsonl", at)
                        at += len(lines[-1])
            with new_version(version_of(self.lake, source.dataset, "v"), {}) as folder:
                (folder / "part.jsonl").write_bytes(b"".join(lines))
        return [
            ([msgspec.structs.replace(one, origin=placed.get(one.origin[1], one.origin)) for one in some], until)
            for some, until in batches
        ]

    def run(self, batches: Sequence[tuple[list[Arrival], int]], buckets: int) -> None:
        run_locally(self.home, self.lake, self.query, RUN, batches, buckets=buckets)

    def version(self, dataset: str) -> Version:
        return version_of(self.lake, dataset, RUN)

    def records(self, dataset: str) -> dict[str, dict[str, Any]]:
        return {one: msgspec.json.decode(line) for one, line in lines_of(self.version(dataset))}

    def sources(self) -> dict[str, Version]:
        """Of every record of a source that stands in the lake, the version."""
        found = {}
        for source in self.query.sources:
            version = version_of(self.lake, source.dataset, "v" if source.topic is None else RUN)
            found |= {one: version for one, _ in lines_of(version)} if version.exists() else {}
        return found

    def edit(self, version: Version, edits: Mapping[str, LineEdit], more: Changes | None, purge: str) -> None:
        draft = begin_draft(version, purge)
        for file, edit in edits.items():
            rewrite(version, file, edit, draft)
        if more and more.appended:
            write_whole(draft.path / f"part-{purge}.jsonl", b"".join(line + b"\n" for line in more.appended))
        switch(version, draft)
        discard(draft_of(version, purge))

    def purge(self, chosen: Sequence[str], purge: str, named: Sequence[str] = ()) -> None:
        """Take source records out, and make the lanes that had them anew."""
        run = StreamRun(self.lake, RUN)
        lanes = lanes_of(run, chosen)
        by_version: dict[str, tuple[Version, dict[str, list[int]]]] = {}
        for one in chosen:
            version, (path, _, position) = self.sources()[one], one.rpartition("#")
            file = path.split("/", 2)[2]
            by_version.setdefault(version.reference, (version, {}))[1].setdefault(file, []).append(int(position))
        for version, removed in by_version.values():
            self.edit(version, {file: LineEdit(removed=sorted(at)) for file, at in removed.items()}, None, purge)
        if not lanes:
            return
        versions = {sink.dataset: [RUN] for sink in self.query.sinks}
        made = Remaking(run, lanes, versions=versions, new=f"part-{purge}.jsonl", named=named)
        for (dataset, _), changes in made.run(remaking.draft_of(self.lake, RUN, purge)).items():
            edits = {
                file: LineEdit(removed=changes.removed.get(file, []), changed=changes.changed.get(file, {}))
                for file in {*changes.removed, *changes.changed}
            }
            self.edit(self.version(dataset), edits, changes, purge)
        remaking.switch(self.lake, RUN, purge)


def lanes_of(run: StreamRun, chosen: Sequence[str]) -> list[int]:
    found: set[int] = set()
    for source in run.query.sources:
        table = run.table(source.name)
        for file, position, lane in table.select("file", "position", LANE).rows():
            if f"lake:{source.dataset}/{file}#{position}" in chosen:
                found.add(lane)
    return sorted(found)


def brute(world: World, arrivals: Mapping[str, Arrival]) -> tuple[Counter[str], Counter[tuple[str, frozenset[str]]]]:
    """What the reference makes of records: results as they are written, and what each was made from."""
    (sink,) = world.query.sinks
    by_lane: dict[bytes, list[tuple[str, Arrival]]] = {}
    for one, arrival in arrivals.items():
        by_lane.setdefault(lane_key(world.query, arrival.content), []).append((one, arrival))
    results: Counter[str] = Counter()
    edges: Counter[tuple[str, frozenset[str]]] = Counter()
    for came in by_lane.values():
        names: dict[EventKey, str] = {}
        sources: dict[str, list[Event]] = {source.name: [] for source in world.query.sources}
        for one, arrival in sorted(came, key=lambda each: (each[1].time, each[1].origin)):
            events = sources[arrival.source]
            events.append(
                Event(EventKey(arrival.time, len(events) + 1, arrival.source, arrival.delay), arrival.content)
            )
            names[events[-1].key] = one
        streams = execute(world.query, sources, END)
        for event in streams[sink.stream]:
            key = event.key
            line = msgspec.json.encode([key.timestamp, key.sequence, key.delay, event.content]).decode()
            results[line] += 1
            edges[line, frozenset(names[parent] for parent in ancestors(world.query, streams, key))] += 1
    return results, edges


def standing(world: World, took_part: Mapping[str, Arrival]) -> dict[str, Arrival]:
    there = world.sources()
    return {one: arrival for one, arrival in took_part.items() if one in there}


def written(world: World) -> dict[str, str]:
    """Results by id, as `brute` writes them."""
    (sink,) = world.query.sinks
    return {
        one: msgspec.json.encode([each["timestamp"], each["sequence"], each["delay"], each["content"]]).decode()
        for one, each in world.records(sink.dataset).items()
    }


def took_part(world: World) -> dict[str, Arrival]:
    """The arrivals that were not late, by the ids of their records."""
    run = StreamRun(world.lake, RUN)
    found: dict[str, Arrival] = {}
    for source in run.query.sources:
        rows = run.table(source.name).select("file", "position", "timestamp", "delay").rows()
        lines = remaking.read_results(world.lake, source.dataset, [(file, at) for file, at, *_ in rows])
        for number, (file, at, time, delay) in enumerate(rows):
            content = msgspec.json.decode(lines[file, at])
            # Rows of a lane stand in the order of taking part.
            found[f"lake:{source.dataset}/{file}#{at}"] = Arrival(source.name, time, ("", number), delay, content)
    return found


def check(world: World, came: Mapping[str, Arrival], *, but: int = 0) -> None:
    left = standing(world, came)
    results, edges = brute(world, left)
    there = written(world)
    missing = results - Counter(there.values())
    assert not Counter(there.values()) - results
    assert missing.total() == but
    if not there:
        return
    inputs: dict[str, set[str]] = {one: set() for one in there}
    certain: dict[str, set[str]] = {one: set() for one in there}
    links = ask(StreamRun(world.lake, RUN), list(there))
    for output, source, exact in zip(links.outputs, links.inputs, links.exact, strict=True):
        inputs[output].add(source)
        certain[output] |= {source} if exact else set()
    if all(links.exact):
        found = Counter((there[one], frozenset(sources)) for one, sources in inputs.items())
        assert not found - edges
    else:
        for one, line in there.items():
            assert any(line == told and certain[one] <= true <= inputs[one] for told, true in edges)


def ask(run: StreamRun, ids: list[str]) -> Links:
    """As exactly as can be: what remembers is not replayed."""
    if any(isinstance(one, Process) for one in run.query.operators):
        return run.backward(ids)
    return run.backward(ids, replayed=True)


def world_of(folder: Path, case: Case, *, by: bool, landed: bool, process: bool) -> World:
    query = case.query
    if landed:
        topics = tuple(msgspec.structs.replace(one, topic=f"t.{one.name}") for one in query.sources)
        query = msgspec.structs.replace(query, sources=topics)
    if process:
        more = Process(name="memory", input=query.sources[0].name, function=Function("test.running-sum"))
        (sink,) = query.sinks
        remembered = msgspec.structs.replace(sink, stream="memory")
        query = msgspec.structs.replace(query, operators=(*query.operators, more), sinks=(remembered,))
    return World(folder, msgspec.structs.replace(query, by=("v",) if by else ()))


def narrowed(case: Case) -> Case:
    """With fewer lanes, so that each has some events."""
    batches = [
        ([msgspec.structs.replace(one, content=one.content | {"v": one.content["v"] % 3}) for one in some], until)
        for some, until in case.batches
    ]
    return Case(case.query, batches, case.lags)


@settings(max_examples=40, deadline=None)
@given(cases(measured=False), st.booleans(), st.booleans(), st.integers(0, 4), st.integers(1, 2), st.data())
def test_lanes_made_anew_are_what_a_run_without_the_records_makes(
    case: Case, by: bool, landed: bool, process: int, buckets: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        case = narrowed(case) if by else case
        world = world_of(Path(scratch), case, by=by, landed=landed, process=process == 0)
        batches = world.land(case.batches)
        world.run(batches, buckets)
        came = took_part(world)
        check(world, came)
        for number in range(2):
            there = sorted(world.sources())
            if not there:
                return
            before = written(world)
            chosen = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=3, unique=True))
            world.purge(chosen, f"p-{number}")
            check(world, came)
            assert_ids_stay(before, written(world))


def assert_ids_stay(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """As many results of one time and content as there were before and are now have the ids that they had."""

    def of(line: str) -> str:
        time, _, _, content = msgspec.json.decode(line)
        return msgspec.json.encode([time, content]).decode()

    old, new = (Counter(map(of, lines.values())) for lines in (before, after))
    kept = Counter(of(line) for one, line in after.items() if one in before and of(before[one]) == of(line))
    # Of equal results in several lanes, those of one cannot stand for those of another.
    if len(set(map(of, before.values()))) == len(before):
        assert kept == old & new
    else:
        assert not kept - (old & new)


@settings(max_examples=25, deadline=None)
@given(cases(measured=False), st.data())
def test_what_a_person_named_stays_away(case: Case, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        world = world_of(Path(scratch), case, by=False, landed=False, process=False)
        world.run(world.land(case.batches), 1)
        came = took_part(world)
        results = sorted(written(world))
        if not results or not came:
            return
        named = [data.draw(st.sampled_from(results))]
        world.purge([data.draw(st.sampled_from(sorted(came)))], "p-0", named)
        assert not set(named) & set(written(world))
        there = sorted(standing(world, came))
        if there:
            world.purge([data.draw(st.sampled_from(there))], "p-1", named)
            assert not set(named) & set(written(world))
            expected = brute(world, standing(world, came))[0]
            assert not Counter(written(world).values()) - expected
            assert (expected - Counter(written(world).values())).total() <= 1
