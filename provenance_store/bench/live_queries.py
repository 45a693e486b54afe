"""What provenance costs running queries, the papers': none, by keys, backward at the sink, and live; time and space.

Every way executes the same events in the same steps, in turns: in this process, where what it stores or sends is
encoded and written as on Spark's workers, and on Structured Streaming. No way but `needed keys` keeps assertions, so
that each is measured by itself.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

import msgspec

from provenance_store.bench.live_ways import WAYS, Backward, PackedBackward
from provenance_store.bench.paper_figures import new_plot, save_plot
from provenance_store.bench.spread import spread
from provenance_store.services.application import listen
from provenance_store.services.service import Say
from provenance_store.streams.engine import Arrival, Plan
from provenance_store.streams.event import END
from provenance_store.streams.examples import Example, find_example
from provenance_store.streams.folders import Workshop
from provenance_store.streams.lanes import Lanes

QUERIES = (
    "word-count",
    "grep",
    "movie-ratings",
    "linear-road",
    "smart-grid",
    "vehicle-tracking",
    "object-annotation",
)
COLUMNS = (
    "where",
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
# Those that run on Structured Streaming too: one task, and lanes in several.
ON_SPARK = ("linear-road", "vehicle-tracking")
_BATCH = 2_000
_STEPS = 10
Batch: TypeAlias = tuple[list[Arrival], int]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for so many events by each way, in every turn; and of a step, milliseconds until all is told.

    In this process that is the step in the middle, on Spark the mean of all.
    """

    where: str
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
        return [self.where, self.query, f"{self.sources:,.0f}", *rates, *losses, behind, f"{latency:.2f}"]


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
        yield Cost(where="engine", query=name, events=events, sources=sources, seconds=seconds, steps=steps)


def measure_spark(queries: Sequence[str], events: int, repeat: int, say: Say) -> Iterator[Cost]:
    """The same on Structured Streaming, from files into the lake and a topic, by an application of its own."""
    command = [sys.executable, "-m", "spark_apps.bench.live_queries", f"--events={events}", f"--repeat={repeat}"]
    for told in listen([*command, *(f"--query={name}" for name in queries)], "The benchmark", say):
        if "row" in told:
            yield msgspec.convert(told["row"], Cost)


def draw_costs(rows: Sequence[Cost], folder: Path) -> None:
    """How much of each query's throughput is left with provenance."""
    figure, axes = new_plot("", "events/s, percent of those without provenance")
    told = [way for way in WAYS if way != "none"]
    width = 0.8 / len(told)
    for at, way in enumerate(told):
        places = [place + (at - (len(told) - 1) / 2) * width for place in range(len(rows))]
        axes.bar(places, [100 - row.loss(way) for row in rows], width, label=way)
    names = [row.query.replace("-", "\n") + ("\non Spark" if row.where == "Spark" else "") for row in rows]
    axes.set_xticks(range(len(rows)), names, fontsize="x-small")
    axes.axhline(100, color="grey", linestyle=":")
    axes.set_ylim(0, 125)
    save_plot(figure, folder / "live-costs.png")


def measure_spaces(queries: Sequence[str], events: int, say: Say) -> Iterator[Space]:
    """What each query's provenance takes, beside what came and what would be kept without it."""
    for name in queries:
        say(f"{name}: space")
        yield _space(find_example(name), events)


def _run(example: Example, batches: list[Batch], way: str) -> tuple[list[float], float]:
    """Seconds of each step, and how many sources a result has where that is seen."""
    with tempfile.TemporaryDirectory() as scratch, Path(os.devnull).open("wb") as sink:
        workshop = Workshop(Path(scratch), "bench", example.query)
        workshop.open()
        executed = WAYS[way].begin(workshop)
        lanes = executed.lanes(0, None)
        took = []
        for batch, until in batches:
            begin = time.perf_counter()
            lanes.add(batch)
            for message in executed.step(lanes, until):
                sink.write(message.to_message().value)
            took.append(time.perf_counter() - begin)
    seen = executed.sources / max(1, executed.results) if isinstance(executed, Backward) else 0.0
    return took, seen


def _space(example: Example, events: int) -> Space:
    # A file has a beginning and an end whatever it holds, which weigh little in one of a size that is worth a file.
    batches = _batches(example, events, max(_BATCH, events // _STEPS))
    sinks = {sink.stream for sink in example.query.sinks}
    intermediate = 0
    sizes: list[int] = []
    state: bytes | None = None
    with tempfile.TemporaryDirectory() as scratch:
        workshop = Workshop(Path(scratch), "bench", example.query)
        workshop.open()
        executed = PackedBackward(workshop, keep="needed")
        for batch, until in batches:
            going = executed.lanes(0, state)
            going.add(batch)
            executed.step(going, until)
            state = going.put_away()
            sizes.append(len(state))
        keys, references = (_size(folder) for folder in (workshop.kept / "keys", executed.folder))
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


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def _batches(example: Example, events: int, size: int = _BATCH) -> list[Batch]:
    """Events as they come, in steps, with the watermark behind each; then the end."""
    (source,) = example.query.sources
    arrived = [
        Arrival(source.name, event["time"], ("v/f", number), 0, event)
        for number, event in enumerate(example.events(events, 1))
    ]
    batches: list[Batch] = []
    for first in range(0, len(arrived), size):
        some = arrived[first : first + size]
        batches.append((some, max(one.time for one in some) - source.lateness))
    return [*batches, ([], END)]
