"""The synthetic experiments of paper 004: Figures 15 to 17 and Table 2, as tables and plots.

Each has a function of its own; `measure_live_synthetic` does all of them.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.bench import live_delay, live_on_demand, live_rates
from provenance_store.bench.live_delay import WHAT, Delays, measure_delays
from provenance_store.bench.live_flow import Flow
from provenance_store.bench.live_on_demand import OnDemand, measure_on_demand
from provenance_store.bench.live_rates import Rate, measure_ank1, measure_native
from provenance_store.bench.paper_figures import new_plot, save_plot
from provenance_store.services.application import listen
from provenance_store.services.service import Say

SIZES = (10, 50, 100)
OVERLAPS = (0, 25, 50, 75)
QUERIES = (1, 2, 4, 8)
PARALLEL = (1, 2)
_DELAYED = Flow(size=50, overlap=25)
_DELAYED_RESULTS = 400


@dataclass
class Measured:
    """All of it."""

    delays: list[Delays] = field(default_factory=list)
    sizes: list[Rate] = field(default_factory=list)
    queries: list[Rate] = field(default_factory=list)
    on_demand: list[OnDemand] = field(default_factory=list)

    def tables(self) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
        """Title, columns and rows of each."""
        title = "Provenance latency in event time, in multiples of U (Figure 15)"
        yield title, live_delay.COLUMNS, [row.cells() for row in self.delays]
        title = "Sizes and overlaps of provenance (Figure 16): median (least to most)"
        yield title, live_rates.COLUMNS, [row.cells() for row in self.sizes]
        title = "Queries and parallelism (Figure 17): median (least to most)"
        yield title, live_rates.COLUMNS, [row.cells() for row in self.queries]
        title = "Told as it is made, and on demand (Table 2): median (least to most)"
        yield title, live_on_demand.COLUMNS, [row.cells() for row in self.on_demand]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in ("delays", "sizes", "queries", "on_demand")}


def measure_live_synthetic(
    *, edges: int, seconds: float, repeat: int, spark: bool, figures: Path | None, say: Say
) -> Measured:
    """Rates over so many edges, on Spark half of them; on demand for so many seconds; plots where there is a folder."""
    measured = Measured(
        delays=measure_latency(spark=spark, say=say),
        sizes=measure_sizes(edges=edges, repeat=repeat, spark=spark, say=say),
        queries=measure_queries(edges=edges, repeat=repeat, spark=spark, say=say),
        on_demand=list(measure_on_demand(SIZES, seconds, repeat, say)),
    )
    if figures is not None:
        draw_live(measured, figures)
    return measured


def measure_latency(*, spark: bool, say: Say) -> list[Delays]:
    """Figure 15."""
    rows = measure_delays(_DELAYED, _DELAYED_RESULTS)
    if spark:
        command = [sys.executable, "-m", "spark_apps.bench.live", "delays"]
        command += [f"--flow={msgspec.json.encode(_DELAYED).decode()}", f"--edges={_DELAYED_RESULTS * _DELAYED.size}"]
        told = listen(command, "The benchmark", say)
        rows += [msgspec.convert(one["row"], Delays) for one in told if "row" in one]
    return rows


def measure_sizes(*, edges: int, repeat: int, spark: bool, say: Say) -> list[Rate]:
    """Figure 16."""
    flows = [Flow(size=size, overlap=overlap) for size in SIZES for overlap in OVERLAPS]
    rows = list(measure_ank1(flows, [1], edges, repeat, say))
    return rows + (list(measure_native(flows, [2], edges // 2, repeat, say)) if spark else [])


def measure_queries(*, edges: int, repeat: int, spark: bool, say: Say) -> list[Rate]:
    """Figure 17."""
    flows = [Flow(size=50, overlap=25, queries=count) for count in QUERIES]
    rows = list(measure_ank1(flows, PARALLEL, edges, repeat, say))
    return rows + (list(measure_native(flows, PARALLEL, edges // 2, repeat, say)) if spark else [])


def draw_live(measured: Measured, folder: Path) -> None:
    """Figures 15 to 17."""
    _draw_delays(measured.delays, folder)
    _draw_sizes(measured.sizes, folder)
    _draw_queries(measured.queries, folder)


def _draw_delays(rows: list[Delays], folder: Path) -> None:
    figure, axes = new_plot("", "provenance latency, multiples of U")
    width = 0.8 / max(1, len(rows))
    for at, row in enumerate(rows):
        places = [place + (at - (len(rows) - 1) / 2) * width for place in range(len(WHAT))]
        axes.bar(places, [row.means[what] for what in WHAT], width, label=row.way)
    axes.set_xticks(range(len(WHAT)), WHAT)
    save_plot(figure, folder / "live-latency.png")


def _draw_sizes(rows: list[Rate], folder: Path) -> None:
    figure, axes = new_plot("sources a result", "results/s")
    for way in dict.fromkeys(row.way for row in rows):
        for overlap in OVERLAPS:
            own = [row for row in rows if row.way == way and row.flow.overlap == overlap]
            line = "-o" if way == "ANK-1" else "--s"
            axes.plot([row.flow.size for row in own], [row.rate for row in own], line, label=f"{way}, {overlap} %")
    axes.set_xticks(SIZES)
    _log_rates(axes)
    save_plot(figure, folder / "live-sizes.png")


def _draw_queries(rows: list[Rate], folder: Path) -> None:
    figure, axes = new_plot("queries", "results/s")
    for way, parallel in dict.fromkeys((row.way, row.parallel) for row in rows):
        own = [row for row in rows if (row.way, row.parallel) == (way, parallel)]
        line = "-o" if way == "ANK-1" else "--s"
        axes.plot([row.flow.queries for row in own], [row.rate for row in own], line, label=f"{way}, {parallel}-fold")
    axes.set_xticks(QUERIES)
    _log_rates(axes)
    save_plot(figure, folder / "live-queries.png")


def _log_rates(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
