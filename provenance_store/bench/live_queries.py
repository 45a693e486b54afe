"""What provenance costs running queries, the papers': none, by keys, backward at the sink, and live; time and space.

Every way executes the same events in the same steps in this process, in turns; what it stores or sends is encoded and
written as on Spark's workers. No way but `needed keys` keeps assertions, so that each is measured by itself.
"""

import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

import msgspec

from provenance_store.bench.spread import spread
from provenance_store.services.service import Say
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Arrival, Plan
from provenance_store.streams.event import END
from provenance_store.streams.examples import Example, find_example
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Workshop
from provenance_store.streams.landing import Landing
from provenance_store.streams.lanes import Lanes
from provenance_store.streams.telling import Expiry

QUERIES = (
    "word-count",
    "grep",
    "movie-ratings",
    "linear-road",
    "smart-grid",
    "vehicle-tracking",
    "object-annotation",
)
WAYS: dict[str, tuple[Keep | None, Expiry | None]] = {
    "none": (None, None),
    "needed keys": ("needed", None),
    "backward": (None, None),
    "live": (None, "exact"),
    "live by U": (None, "reach"),
}
COLUMNS = (
    "query",
    "sources a result",
    *(f"{way}, events/s" for way in WAYS),
    "loss: keys",
    "loss: backward",
    "loss: live",
    "live to backward",
    "latency, live to none",
)
SPACE_COLUMNS = (
    "query",
    "source MB",
    "references",
    "needed keys",
    "intermediate data",
    "a checkpoint",
    "all checkpoints",
)
_BATCH = 2_000
Batch: TypeAlias = tuple[list[Arrival], int]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for so many events by each way, in every turn; and of the middle step, milliseconds until all is told."""

    query: str
    events: int
    sources: float
    seconds: dict[str, list[float]]
    steps: dict[str, list[float]]

    def loss(self, way: str, base: str = "none") -> float:
        """Percent of another way's throughput that is lost."""
        return 100 * (1 - median(self.seconds[base]) / median(self.seconds[way]))

    def cells(self) -> list[str]:
        """As the table shows it."""
        rates = [spread([self.events / one for one in self.seconds[way]], ",.0f") for way in WAYS]
        losses = [f"{self.loss(way):.0f} %" for way in ("needed keys", "backward", "live")]
        latency = median(self.steps["live"]) / median(self.steps["none"])
        behind = f"{self.loss('live', 'backward'):.0f} %"
        return [self.query, f"{self.sources:,.0f}", *rates, *losses, behind, f"{latency:.2f}"]


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes: of what came, of references to it at results, of keys, of what is not stored, and of states."""

    query: str
    source: int
    references: int
    keys: int
    intermediate: int
    checkpoint: int
    checkpoints: int

    def cells(self) -> list[str]:
        """As the table shows it, in percent of what came."""
        names = ("references", "keys", "intermediate", "checkpoint", "checkpoints")
        shares = [f"{100 * getattr(self, name) / self.source:.1f} %" for name in names]
        return [self.query, f"{self.source / 1e6:.1f}", *shares]


def measure_costs(queries: Sequence[str], events: int, repeat: int, say: Say) -> Iterator[Cost]:
    """Each query by each way, in turns."""
    for name in queries:
        example = find_example(name)
        batches = _batches(example, events)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        steps: dict[str, list[float]] = {way: [] for way in WAYS}
        _run(example, batches[:1], "live")  # what is loaded and compiled once is not measured
        sources = 0.0
        for turn in range(repeat):
            for way in WAYS:
                say(f"{name}, turn {turn + 1}: {way}")
                took, seen = _run(example, batches, way)
                sources = sources or seen
                seconds[way].append(sum(took))
                steps[way].append(1000 * median(took))
        yield Cost(query=name, events=events, sources=sources, seconds=seconds, steps=steps)


def measure_spaces(queries: Sequence[str], events: int, say: Say) -> Iterator[Space]:
    """What each query's provenance takes, beside what came and what would be kept without it."""
    for name in queries:
        say(f"{name}: space")
        yield _space(find_example(name), events)


class _Told:
    """A way of executing that tells live, or stores keys, or nothing."""

    def __init__(self, workshop: Workshop, way: str) -> None:
        keep, live = WAYS[way]
        self._execution = Execution(workshop, keep=keep, live=live)
        self.lanes = self._execution.lanes(0, None)

    def step(self, until: int) -> list[bytes]:
        """Go on to a time; what is sent."""
        return [message.to_message().value for message in self._execution.step(self.lanes, until)]


class _Backward:
    """Source ids carried through every operator by link records, unfolded at the sink."""

    def __init__(self, workshop: Workshop, keep: Keep | None = None, state: bytes | None = None) -> None:
        self.landing = Landing(workshop, keep=keep, trace=True)
        self.lanes = Lanes(Plan(workshop.query, trails=True), 0, state)
        self.results = self.sources = 0

    def step(self, until: int) -> list[bytes]:
        """Go on to a time; the references, of each result the ids of its sources."""
        moves = self.lanes.advance(until)
        rows = []
        for one in self.landing.take(self.lanes, moves):
            sources = one.move.engine.sources_of(one.event.key)
            rows.append((one.id, [self.landing.source_id(source, leaf) for source, leaf in sources]))
        for lane in self.lanes.at_work():
            deque(lane.engine.forget(), maxlen=0)  # what is alive is of no interest here
        self.results += len(rows)
        self.sources += sum(len(sources) for _, sources in rows)
        return [msgspec.json.encode(rows)] if rows else []


def _run(example: Example, batches: list[Batch], way: str) -> tuple[list[float], float]:
    """Seconds of each step, and how many sources a result has where that is seen."""
    with tempfile.TemporaryDirectory() as scratch, Path(os.devnull).open("wb") as sink:
        workshop = Workshop(Path(scratch), "bench", example.query)
        workshop.open()
        executed = _Backward(workshop) if way == "backward" else _Told(workshop, way)
        took = []
        for batch, until in batches:
            begin = time.perf_counter()
            executed.lanes.add(batch)
            for sent in executed.step(until):
                sink.write(sent)
            took.append(time.perf_counter() - begin)
    seen = executed.sources / max(1, executed.results) if isinstance(executed, _Backward) else 0.0
    return took, seen


def _space(example: Example, events: int) -> Space:
    batches = _batches(example, events)
    sinks = {sink.stream for sink in example.query.sinks}
    references = intermediate = 0
    sizes: list[int] = []
    state: bytes | None = None
    with tempfile.TemporaryDirectory() as scratch:
        workshop = Workshop(Path(scratch), "bench", example.query)
        workshop.open()
        for batch, until in batches:
            executed = _Backward(workshop, "needed", state)
            executed.lanes.add(batch)
            references += sum(map(len, executed.step(until)))
            state = executed.lanes.put_away()
            sizes.append(len(state))
        keys = sum(file.stat().st_size for file in (workshop.kept / "keys").rglob("*.parquet"))
    lanes = Lanes(Plan(example.query))
    for batch, until in batches:
        lanes.add(batch)
        made = [(name, events) for move in lanes.advance(until) for name, events in move.made.items()]
        intermediate += sum(
            len(msgspec.json.encode(event.content)) for name, some in made if name not in sinks for event in some
        )
    source = sum(len(msgspec.json.encode(one.content)) + 1 for batch, _ in batches for one in batch)
    return Space(
        query=example.name,
        source=source,
        references=references,
        keys=keys,
        intermediate=intermediate,
        checkpoint=max(sizes, default=0),
        checkpoints=sum(sizes),
    )


def _batches(example: Example, events: int) -> list[Batch]:
    """Events as they come, in steps, with the watermark behind each; then the end."""
    (source,) = example.query.sources
    arrived = [
        Arrival(source.name, event["time"], ("v/f", number), 0, event)
        for number, event in enumerate(example.events(events, 1))
    ]
    batches: list[Batch] = []
    for first in range(0, len(arrived), _BATCH):
        some = arrived[first : first + _BATCH]
        batches.append((some, max(one.time for one in some) - source.lateness))
    return [*batches, ([], END)]
