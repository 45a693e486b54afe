"""Events a second through chains of operators, with and without provenance, in turns: in the engine, and on Spark."""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from provenance_store.bench.spread import spread
from provenance_store.bench.stream_chains import arrivals, chain
from provenance_store.services.application import listen
from provenance_store.services.service import Say
from provenance_store.streams.assertions import Keep
from provenance_store.streams.engine import Arrival
from provenance_store.streams.event import END
from provenance_store.streams.execution import Execution
from provenance_store.streams.folders import Workshop

# Ways of keeping provenance: none, what is needed, all keys (the paper's), and each event's parents.
WAYS: dict[str, tuple[Keep | None, bool]] = {
    "none": (None, False),
    "needed keys": ("needed", False),
    "all keys": ("keys", False),
    "every edge": (None, True),
}
COLUMNS = ("where", "components", "work an event", *(f"{way}, events/s" for way in WAYS), "loss with needed keys")
_BATCH = 2_000


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for so many events by each way, in every turn."""

    where: str
    components: int
    work: float
    events: int
    seconds: dict[str, list[float]]

    def loss(self, way: str) -> float:
        """Percent of the throughput without provenance that is lost."""
        return 100 * (1 - median(self.seconds["none"]) / median(self.seconds[way]))

    def cells(self) -> list[str]:
        """As the table shows it."""
        rates = [spread([self.events / one for one in self.seconds[way]], ",.0f") for way in WAYS]
        return [self.where, str(self.components), f"{self.work:g} ms", *rates, f"{self.loss('needed keys'):.0f} %"]


def measure_engine(
    components: Sequence[int], works: Sequence[float], events: int, repeat: int, say: Say
) -> Iterator[Throughput]:
    """The library's engine with landing, in this process; of work that takes time, fewer events tell the rate."""
    everything = arrivals(events, 100)
    for work in works:
        for count in components:
            some = everything[: events if not work else max(50, round(500 / count))]
            seconds: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(repeat):
                for way, kept in WAYS.items():
                    say(f"engine, {count} components, {work:g} ms, turn {turn + 1}: {way}")
                    seconds[way].append(_run(count, work, some, *kept))
            yield Throughput(where="engine", components=count, work=work, events=len(some), seconds=seconds)


def measure_spark(components: Sequence[int], events: int, repeat: int, say: Say) -> Iterator[Throughput]:
    """Structured Streaming from files into the lake, by an application of its own."""
    command = [sys.executable, "-m", "spark_apps.bench.streams", f"--events={events}", f"--repeat={repeat}"]
    command += [f"--components={count}" for count in components]
    for told in listen(command, "The benchmark", say):
        if "row" in told:
            yield msgspec.convert(told["row"], Throughput)


def _run(components: int, work: float, events: list[Arrival], keep: Keep | None, capture: bool) -> float:
    query = chain(components, work)
    with tempfile.TemporaryDirectory() as scratch:
        workshop = Workshop(Path(scratch), "bench", query)
        workshop.open()
        execution = Execution(workshop, capture=capture, keep=keep)
        lanes = execution.lanes(0, None)
        begin = time.perf_counter()
        batches = [events[first : first + _BATCH] for first in range(0, len(events), _BATCH)]
        for batch, until in [*((batch, batch[-1].time) for batch in batches), ([], END)]:
            lanes.add(batch)
            execution.step(lanes, until)
        return time.perf_counter() - begin
