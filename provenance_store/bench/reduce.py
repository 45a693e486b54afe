"""What reduction costs on one core: the hashtag-count stream in three sizes, beside the way one would first write it.

Each way is measured in a process of its own, with one thread for everything, so that one's memory is not another's.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import msgspec

from provenance_store.bench.spread import spread
from provenance_store.errors import JobError
from provenance_store.services.service import Say

SIZES = (50_000, 200_000, 1_000_000)
# The size that the cost of an edge is told in relation to, where it was measured.
_REFERENCE = 200_000
_ONE_THREAD = dict.fromkeys(("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
_LAST_LINES = 15


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One way on a stream of one size: seconds of each turn, and what it needed beside its input."""

    way: str
    tweets: int
    messages: int
    edges: int
    bytes: int
    wall: list[float]
    processor: list[float]
    first_call: float
    memory: int
    exact: bool | None

    @property
    def rates(self) -> list[float]:
        """Edges a second of wall-clock time."""
        return [self.edges / seconds for seconds in self.wall]

    @property
    def processor_rates(self) -> list[float]:
        """Edges a second of processor time, which a busy machine disturbs less."""
        return [self.edges / seconds for seconds in self.processor]

    @property
    def megabytes(self) -> list[float]:
        """Megabytes of PROV-JSON a second of wall-clock time."""
        return [self.bytes / 1e6 / seconds for seconds in self.wall]

    @property
    def cost(self) -> float:
        """Processor time of an edge in nanoseconds."""
        return median(self.processor) / self.edges * 1e9


class Comparison:
    """Rows beside each other: ratios to the baseline, and how the cost of an edge grows with the stream."""

    def __init__(self, rows: Sequence[Row], baseline: str) -> None:
        self.rows = rows
        self._baseline = baseline

    def speedup(self, row: Row) -> float | None:
        """How many times as fast as the baseline on the same stream."""
        other = self._find(self._baseline, row.tweets)
        return median(row.rates) / median(other.rates) if other else None

    def growth(self, row: Row) -> float | None:
        """The cost of an edge over that in the stream of 200,000 tweets."""
        other = self._find(row.way, _REFERENCE)
        return row.cost / other.cost if other else None

    def cells(self) -> Iterator[list[str]]:
        """As it is shown to people."""
        for row in self.rows:
            yield [
                f"{row.tweets:,}",
                row.way,
                spread(row.rates, ",.0f"),
                spread(row.processor_rates, ",.0f"),
                spread(row.megabytes, ",.0f"),
                _ratio(self.speedup(row)),
                _ratio(self.growth(row)),
                f"{row.memory / 2**20:,.0f}",
                {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[row.exact],
            ]

    def to_dicts(self) -> list[dict[str, Any]]:
        """For scripts."""
        return [
            {
                **msgspec.to_builtins(row),
                "edges_per_second": row.rates,
                "edges_per_processor_second": row.processor_rates,
                "megabytes_per_second": row.megabytes,
                "times_baseline": self.speedup(row),
                "cost_relative_to_200k": self.growth(row),
            }
            for row in self.rows
        ]

    def _find(self, way: str, tweets: int) -> Row | None:
        return next((row for row in self.rows if (row.way, row.tweets) == (way, tweets)), None)


COLUMNS = (
    "tweets",
    "",
    "edges/s",
    "edges/s of processor time",
    "MB/s",
    "times the baseline",
    "cost of an edge to 200k",
    "MiB beside the input",
    "exact",
)


def measure_reduce(*, sizes: Sequence[int], repeat: int, say: Say) -> Comparison:
    """Every way on every size."""
    # Here and not above: the command line lists its benchmarks without loading Polars.
    from provenance_store.bench.reduction_ways import BASELINE, WAYS  # noqa: PLC0415

    rows = []
    for tweets in sizes:
        for way in WAYS:
            say(f"{tweets:,} tweets: {way}")
            rows.append(_measure(way, tweets, repeat))
    return Comparison(rows, BASELINE)


def _measure(way: str, tweets: int, repeat: int) -> Row:
    command = [sys.executable, "-m", "provenance_store.bench.reduction_ways", f"--way={way}"]
    command += [f"--tweets={tweets}", f"--repeat={repeat}"]
    done = subprocess.run(command, env={**os.environ, **_ONE_THREAD}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.splitlines()[-_LAST_LINES:]
        raise JobError(f"The benchmark ended with status {done.returncode}. It said last:\n" + "\n".join(lines))
    return msgspec.convert(json.loads(done.stdout), Row)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
