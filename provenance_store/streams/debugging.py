"""A result made again step by step, from the last checkpoint before what it was made from (paper 001's offline part).

The lane's state is taken up as it was before the first input of the result took part. Then its inputs are given again,
one moment after the other, and every operator is watched: what it looked at, what it made, what it remembered before
and after. First only the inputs that contributed are given. Where that makes another result, because others move
windows that count, or are remembered, all inputs of the lane since then are given; only what contributed is shown.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake.layout import version_of
from provenance_store.lake.records import read_line
from provenance_store.model.ids import RecordId
from provenance_store.streams.checkpoints import Checkpoints
from provenance_store.streams.engine import Arrival, Engine, Firing, Plan
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.lanes import bucket_of_lane, lane_state
from provenance_store.streams.reference import Streams
from provenance_store.streams.runs import Keeper, StreamRun


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An event; one that contributed to the result or did not. Of a source's event, the id of its record."""

    stream: str
    timestamp: int
    content: Any
    contributes: bool
    id: str | None = None


class DebugStep(msgspec.Struct, frozen=True, kw_only=True):
    """One operator at work once, with what it remembered before and after, where it remembers."""

    number: int
    operator: str
    operation: str
    at: int
    inputs: list[list[Shown]]
    outputs: list[Shown]
    before: dict[str, Any]
    after: dict[str, Any]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A result made again: from which step's checkpoint (None: from the beginning), of which inputs, and every step.

    `given` says what was given again: the `contributing` inputs alone, or all of the `lane`. `same` says whether the
    result came back as it stands in the lake.
    """

    result: str
    run: str
    query: str
    lane: int
    content: Any
    checkpoint: int | None
    given: Literal["contributing", "lane"]
    events: int
    same: bool
    sources: list[Shown]
    steps: list[DebugStep]


def open_run(lake: Path, result: str, keeper: Keeper | None = None) -> StreamRun:
    """The run that made a result."""
    parts = RecordId.parse(result)
    marker = version_of(lake, parts.dataset, parts.version).marker()
    run = marker.get("run")
    if "stream" not in marker or not isinstance(run, str):
        raise InputError(
            f"{parts.dataset}/{parts.version} was not made by a stream query: only what streams made is replayed."
        )
    return StreamRun(lake, run, keeper)


def debug(home: Path, lake: Path, result: str, keeper: Keeper | None = None) -> Session:
    """Make a result again, step by step."""
    run = open_run(lake, result, keeper)
    replay = _Replay(home, lake, run, result)
    session = replay.make("contributing")
    return session if session.same else replay.make("lane")


class _Replay:
    """One result of one run."""

    def __init__(self, home: Path, lake: Path, run: StreamRun, result: str) -> None:
        self._run = run
        self._result = result
        recorded = msgspec.json.decode(read_line(lake, result))
        self._content = recorded["content"]
        found = run.results(RecordId.parse(result).dataset).filter(pl.col("id") == result)
        if found.is_empty():
            raise InputError(f"Run {run.facts.run!r} tells nothing of {result}: it may not have been published yet.")
        row = found.row(0, named=True)
        self._lane = int(row["lane"])
        self._key = EventKey(row["timestamp"], row["sequence"], recorded["stream"], row["delay"])
        self._contributing = set(run.backward([result]).inputs)
        self._entered = {source.name: run.entered(self._lane, source.name, 0) for source in run.query.sources}
        self._checkpoint, self._state = self._begin(Checkpoints(home, run.facts.run, bucket_of_lane(self._lane)))

    def _begin(self, checkpoints: Checkpoints) -> tuple[int | None, bytes | None]:
        """The last checkpoint before the first input that contributed took part (its Algorithm 1)."""
        steps = [
            table.filter(pl.col("id").is_in(list(self._contributing)))["step"].min() for table in self._entered.values()
        ]
        first = min(int(step) for step in steps if step is not None)  # type: ignore[arg-type]
        step = checkpoints.last_before(first)
        return (None, None) if step is None else (step, lane_state(checkpoints.read(step), self._lane))

    def make(self, given: Literal["contributing", "lane"]) -> Session:
        """Give inputs again, and watch."""
        firings: list[Firing] = []
        engine = Engine(Plan(self._run.query, parents=True, watch=firings.append), self._state)
        engine.drop_waiting()
        arrivals = self._arrivals(engine.counts, given)
        engine.add(arrivals)
        ids: dict[EventKey, str] = {}
        made: Streams = {}
        for until in [*sorted({one.time for one in arrivals}), self._key.triggered + 1]:
            entered, streams = engine.advance(until)
            ids |= {event.key: origin[0] for event, origin in entered}
            for name, events in streams.items():
                made.setdefault(name, []).extend(events)
        again = self._find(made)
        contributed = self._behind(made, again)
        sources = [
            self._show(event, contributed, ids)
            for firing in firings
            for event in _events(firing.windows)
            if event.key in contributed and event.key in ids
        ]
        return Session(
            result=self._result,
            run=self._run.facts.run,
            query=self._run.query.name,
            lane=self._lane,
            content=self._content,
            checkpoint=self._checkpoint,
            given=given,
            events=len(arrivals),
            same=again is not None,
            sources=list({one.id: one for one in sources}.values()),
            steps=self._steps(firings, contributed, ids),
        )

    def _arrivals(self, counts: dict[str, int], given: str) -> list[Arrival]:
        arrivals = []
        for source, table in self._entered.items():
            left = table.filter(
                (pl.col("sequence") > counts.get(source, 0)) & (pl.col("timestamp") <= self._key.triggered)
            )
            if given == "contributing":
                left = left.filter(pl.col("id").is_in(list(self._contributing)))
            contents = self._run.contents(source, left["row"].cast(pl.Int64).to_numpy())
            arrivals += [
                Arrival(source, row["timestamp"], (row["id"], row["sequence"]), row["delay"], content)
                for row, content in zip(left.iter_rows(named=True), contents, strict=True)
            ]
        # Of one time, as they took part.
        return sorted(arrivals, key=lambda one: (one.time, one.source, one.origin[1]))

    def _find(self, made: Streams) -> Event | None:
        """The result among what came back: the last of its time with its content."""
        same = [
            event
            for event in made.get(self._key.stream, [])
            if event.key.timestamp == self._key.timestamp and msgspec.to_builtins(event.content) == self._content
        ]
        exact = [event for event in same if event.key.sequence == self._key.sequence]
        return (exact or same or [None])[-1]  # type: ignore[list-item]

    def _behind(self, made: Streams, again: Event | None) -> set[EventKey]:
        parents = {event.key: event.parents for events in made.values() for event in events}
        found: set[EventKey] = set()
        left = [again.key] if again else []
        while left:
            key = left.pop()
            if key not in found:
                found.add(key)
                left += parents.get(key, ())
        return found

    def _steps(
        self, firings: Sequence[Firing], contributed: set[EventKey], ids: dict[EventKey, str]
    ) -> list[DebugStep]:
        steps: list[DebugStep] = []
        operations = {one.name: str(one.__struct_config__.tag) for one in self._run.query.operators}
        for firing in firings:
            if not any(event.key in contributed for event in [*firing.made, *_events(firing.windows)]):
                continue
            before, after = msgspec.json.decode(firing.before), msgspec.json.decode(firing.after)
            changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
            steps.append(
                DebugStep(
                    number=len(steps) + 1,
                    operator=firing.operator,
                    operation=operations[firing.operator],
                    at=firing.trigger.timestamp,
                    inputs=[[self._show(event, contributed, ids) for event in window] for window in firing.windows],
                    outputs=[self._show(event, contributed, ids) for event in firing.made],
                    before={key: before.get(key) for key in sorted(changed)},
                    after={key: after.get(key) for key in sorted(changed)},
                )
            )
        return steps

    def _show(self, event: Event, contributed: set[EventKey], ids: dict[EventKey, str]) -> Shown:
        return Shown(
            stream=event.key.stream,
            timestamp=event.key.timestamp,
            content=event.content,
            contributes=event.key in contributed,
            id=ids.get(event.key),
        )


def _events(windows: list[list[Event]]) -> list[Event]:
    return [event for window in windows for event in window]
