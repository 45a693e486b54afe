"""A run of ItemMonitor on generated lines, made here without Spark."""

from pathlib import Path

import msgspec

from provenance_store.streams.engine import Arrival
from provenance_store.streams.examples import find_example
from provenance_store.streams.examples.item_monitor import LINES
from provenance_store.streams.examples.writing import write_example
from provenance_store.streams.execution import run_locally

__all__ = ["LINES", "RUN", "monitor_items"]
RUN = "monitor-1"
_BATCH = 20


def monitor_items(home: Path, *, lake: Path | None = None, count: int = 200, checkpoint_every: int = 1) -> Path:
    """Write lines into the lake, and run the query on them to its end; the home that was given."""
    example, lake = find_example("item-monitor"), lake or home / "lake"
    written = write_example(example, lake, count=count, seed=1)
    (source,) = example.query.sources
    file, position, arrivals = f"{written.events.parent.name}/{written.events.name}", 0, []
    for line in written.events.read_bytes().splitlines(keepends=True):
        event = msgspec.json.decode(line)
        arrivals.append(Arrival(source.name, event["time"], (file, position), 0, event))
        position += len(line)
    batches, newest = [], 0
    for first in range(0, len(arrivals), _BATCH):
        some = arrivals[first : first + _BATCH]
        newest = max(newest, *(one.time for one in some))
        batches.append((some, newest - source.lateness))
    run_locally(home, lake, example.query, RUN, batches, checkpoint_every=checkpoint_every)
    return home
