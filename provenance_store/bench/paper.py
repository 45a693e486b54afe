"""The evaluation of paper 003 (Section VI) again, on our hashtag-count stream: Figures 14, 15 and 16, and Table I."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from provenance_store.bench.paper_accuracy import EXACT, Accuracy, measure_accuracy
from provenance_store.bench.paper_figures import draw_accuracy, draw_local, draw_speedup, prepare
from provenance_store.bench.paper_sizes import LocalOut, Size, measure_local, measure_sizes
from provenance_store.bench.paper_speedup import Speed, measure_speedup
from provenance_store.bench.spread import spread
from provenance_store.services.service import Say

_ALL = 100.0


class Tweets(NamedTuple):
    """Of how many tweets the stream is, for each part."""

    accuracy: int
    local: int
    table: int
    speedup: int


class Table(NamedTuple):
    """As it is shown to people."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]]


class Evaluation(msgspec.Struct, frozen=True):
    """All that was measured."""

    accuracy: list[Accuracy]
    local: list[LocalOut]
    table: list[Size]
    speedup: list[Speed]

    def wrong(self) -> list[str]:
        """What must not be: a false dependency anywhere, or one that the exact reduction did not find."""
        told = [f"{row.way} told {row.false:,} false dependencies" for row in self.accuracy if row.false]
        told += [
            f"the exact reduction found {row.found:,} of {row.true:,}, {row.percent:g} % out of order"
            for row in self.accuracy
            if row.way == EXACT and (row.found, row.left_over) != (row.true, 0)
        ]
        return told + [
            "the exact reduction is not exact" for row in self.table if row.way == EXACT and row.found != _ALL
        ]

    def tables(self) -> list[Table]:
        """Each part as a table."""
        return [self._accuracy(), self._local(), self._sizes(), self._speedup()]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        return told

    def _accuracy(self) -> Table:
        percents = list(dict.fromkeys(row.percent for row in self.accuracy))
        cells: dict[str, list[str]] = {}
        for row in self.accuracy:
            cells.setdefault(row.way, [row.way]).append(f"{row.share:.2f}")
        columns = ["out of order", *(f"{percent:g} %" for percent in percents)]
        return Table("Figure 14: of 100 true dependencies, found", columns, list(cells.values()))

    def _local(self) -> Table:
        batches = list(dict.fromkeys(row.batch for row in self.local))
        cells: dict[str, list[str]] = {}
        for row in self.local:
            cells.setdefault(row.partitioning, [row.partitioning]).append(f"{row.edges_out:,}")
        title = f"Figure 16: edges emitted by local reducers, of {self.local[0].edges_in:,}, by batch size"
        return Table(title, ["", *(f"{batch:,}" for batch in batches)], list(cells.values()))

    def _sizes(self) -> Table:
        columns = ["", "", "in", "after local", "after global", "factor", "found, %", "by following, %"]
        rows = []
        for row in self.table:
            edges = [f"{n:,}" for n in (row.edges_in, row.edges_local, row.edges_out)]
            sizes = [f"{n / 1e6:,.1f}" for n in (row.bytes_in, row.bytes_local, row.bytes_out)]
            found = [f"{row.found:.2f}", f"{row.followed:.2f}"]
            rows += [
                [row.way, "edges", *edges, f"{row.edge_ratio:.2f}", *found],
                [row.way, "MB", *sizes, f"{row.size_ratio:.2f}", "", ""],
            ]
            if row.parquet is not None:
                factor = f"{row.bytes_in / row.parquet:.2f}"
                rows.append([f"{row.way}, as Parquet", "MB", sizes[0], "", f"{row.parquet / 1e6:,.1f}", factor, "", ""])
        return Table("Table I: the graph before, between and after the reducers", columns, rows)

    def _speedup(self) -> Table:
        first = self.speedup[0]
        columns = ["local reducers"]
        columns += ["local step, s", "with the global, s", "processor time of the slowest, s"]
        columns += ["speedup local", "speedup", "speedup by processor time", "MB/s a partition"]
        rows = []
        for row in self.speedup:
            times = (row.local, row.total, row.processor)
            speedups = [
                f"{median(one) / median(many):.2f}"
                for one, many in zip((first.local, first.total, first.processor), times, strict=True)
            ]
            rows.append([str(row.processes), *map(spread, times), *speedups, f"{row.rate:.2f}"])
        return Table(f"Figure 15: {first.megabytes:,.0f} MB, each local reducer a process", columns, rows)


def measure_paper(
    tweets: Tweets,
    *,
    percents: Sequence[float],
    batches: Sequence[int],
    processes: int,
    repeat: int,
    seed: int,
    figures: Path,
    say: Say,
) -> Evaluation:
    """Measure everything, and draw it into a folder."""
    prepare(figures)
    measured = Evaluation(
        measure_accuracy(tweets.accuracy, percents, seed=seed, say=say),
        measure_local(tweets.local, batches, say),
        measure_sizes(tweets.table, say),
        measure_speedup(tweets.speedup, most=processes, repeat=repeat, say=say),
    )
    draw_accuracy(measured.accuracy, figures)
    draw_local(measured.local, figures)
    draw_speedup(measured.speedup, figures)
    return measured
