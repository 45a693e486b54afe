"""ANK-1 beside a database in memory that is asked for the graph (paper 004, Table 2), in turns.

Both are fed results as fast as they take them, and write the same elements to a file. The database keeps each result's
provenance, and a thread asks it for what is new: at once when it has answered (aggressive), or every second (relaxed).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import msgspec

from provenance_store.bench.live_delivery import Ank1, Database, Delivery, Way
from provenance_store.bench.live_flow import Flow
from provenance_store.bench.spread import spread
from provenance_store.services.service import Say

COLUMNS = (
    "way",
    "sources a result",
    "taken, results/s",
    "told, results/s",
    "latency, ms",
    "delivery latency, ms",
    "processor, cores",
    "longest backlog, results",
)
STEP = 10
RELAXED_SECONDS = 1.0
# Long enough to let another thread on, and no more.
AGGRESSIVE_SECONDS = 0.0001


class OnDemand(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one way: rates of taking and telling, latencies in seconds, cores in use, and the backlog."""

    way: str
    size: int
    taken: list[float]
    told: list[float]
    latency: list[float]
    delivery: list[float]
    cores: list[float]
    backlog: list[int]

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [
            self.way,
            str(self.size),
            spread(self.taken, ",.0f"),
            spread(self.told, ",.0f"),
            spread([1000 * one for one in self.latency], ",.1f"),
            spread([1000 * one for one in self.delivery], ",.1f"),
            spread(self.cores, ".2f"),
            f"{max(self.backlog):,}",
        ]


WAYS: dict[str, Callable[[int, Delivery], Way]] = {
    "ANK-1": Ank1,
    "SQLite, relaxed": lambda reach, delivery: Database(reach, delivery, RELAXED_SECONDS),
    "SQLite, aggressive": lambda reach, delivery: Database(reach, delivery, AGGRESSIVE_SECONDS),
}


def measure_on_demand(sizes: Sequence[int], seconds: float, repeat: int, say: Say) -> Iterator[OnDemand]:
    """Each way fed for so many seconds, in turns."""
    for size in sizes:
        rows = {
            way: OnDemand(way=way, size=size, taken=[], told=[], latency=[], delivery=[], cores=[], backlog=[])
            for way in WAYS
        }
        for turn in range(repeat):
            for way, row in rows.items():
                say(f"{size} sources a result, turn {turn + 1}: {way}")
                with TemporaryDirectory() as folder:
                    _feed(way, row, seconds, Path(folder) / "elements.jsonl")
        yield from rows.values()


def _feed(name: str, row: OnDemand, seconds: float, path: Path) -> None:
    flow = Flow(size=row.size)
    delivery = Delivery(path)
    way = WAYS[name](flow.reach, delivery)
    taken, backlog, waited = 0, 0, []
    used, begin = time.process_time(), time.perf_counter()
    for watermark, results in flow.steps(1 << 40, STEP):
        made = time.perf_counter()
        if made - begin > seconds:
            break
        way.take(watermark, results, made)
        waited.append(time.perf_counter() - made)
        taken += len(results)
        backlog = max(backlog, taken - delivery.results)
    fed = time.perf_counter() - begin
    way.finish()
    told = time.perf_counter() - begin
    delivery.close()
    row.taken.append(taken / fed)
    row.told.append(delivery.results / told)
    row.latency.append(fmean(waited))
    row.delivery.append(delivery.waited)
    row.cores.append((time.process_time() - used) / told)
    row.backlog.append(backlog)
