"""`headwater bench streams`: what provenance of streams takes, in bytes and in time, with plots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.bench.paper_figures import new_plot, save_plot
from provenance_store.bench.stream_storage import (
    COLUMNS as STORAGE_COLUMNS,
)
from provenance_store.bench.stream_storage import (
    PAPER_KEY,
    WINDOW_COLUMNS,
    Storage,
    Windowed,
    measure_storage,
    measure_windows,
)
from provenance_store.bench.stream_throughput import COLUMNS, WAYS, Throughput, measure_engine, measure_spark
from provenance_store.services.service import Say

SIZES = [100, 1024]
MOST = 15
# Of the chains that are measured and drawn, those that a table shows.
_SHOWN = (2, 5, 10, 15)
# How many times as many events flow where Spark is measured.
_ON_SPARK = 5


@dataclass
class Measured:
    """All of it."""

    storage: list[Storage] = field(default_factory=list)
    windows: list[Windowed] = field(default_factory=list)
    throughput: list[Throughput] = field(default_factory=list)

    def tables(self) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
        """Title, columns and rows of each."""
        events = self.storage[0].events if self.storage else 0
        title = f"Storage of {events:,} events; the formulas of Table III with keys of {PAPER_KEY} B"
        yield title, STORAGE_COLUMNS, [row.cells() for row in self.storage if row.components in _SHOWN]
        yield "One sliding window beside its input", WINDOW_COLUMNS, [row.cells() for row in self.windows]
        yield "Throughput: median (least to most)", COLUMNS, [row.cells() for row in self.throughput]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in ("storage", "windows", "throughput")}


def measure_streams(*, events: int, flow: int, repeat: int, spark: bool, figures: Path | None, say: Say) -> Measured:
    """Storage of so many events; throughput of `flow` events, each measured so often; plots where there is a folder."""
    measured = Measured()
    say("storing")
    measured.storage = measure_storage(SIZES, MOST, events)
    measured.windows = measure_windows([10, 100], events // 10)
    measured.throughput = list(measure_engine([2, 5, 10, 15], [0.0], flow, repeat, say))
    measured.throughput += measure_engine([2, 15], [1.0, 2.0], flow, repeat, say)
    if spark:
        # To begin takes Spark three seconds, whatever flows: more has to, for them to weigh little.
        measured.throughput += measure_spark([2, 15], _ON_SPARK * flow, repeat, say)
    if figures is not None:
        _draw_storage(measured.storage, figures)
        _draw_throughput(measured.throughput, figures)
    return measured


def _draw_storage(rows: list[Storage], folder: Path) -> None:
    for size in SIZES:
        own = [row for row in rows if row.size == size and row.stored == "plain"]
        figure, axes = new_plot("components", "MB")
        for label, name in (
            ("keys and contents (unoptimised)", "unoptimised"),
            ("all keys (optimised)", "optimised"),
            ("needed keys", "needed"),
            ("every edge", "edges"),
        ):
            axes.plot(
                [row.components for row in own],
                [getattr(row, name) / 1e6 for row in own],
                "-o",
                markersize=3,
                label=label,
            )
        axes.set_ylim(bottom=0)
        save_plot(figure, folder / f"streams-storage-{size}.png")


def _draw_throughput(rows: list[Throughput], folder: Path) -> None:
    own = [row for row in rows if row.where == "engine" and not row.work]
    figure, axes = new_plot("components", "events/s")
    for way in WAYS:
        axes.plot([row.components for row in own], [row.events / min(row.seconds[way]) for row in own], "-o", label=way)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    save_plot(figure, folder / "streams-throughput.png")
