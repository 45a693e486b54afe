"""The whole way from a topic to `graph.parquet`, measured by the application beside the library that runs it."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from provenance_store.services.application import listen
from provenance_store.services.service import Say

COLUMNS = (
    "turn", "tweets", "cores", "edges in", "after local", "after global", "seconds", "edges/s", "MB/s",
    "s after the end", "peak MiB", "disk MiB", "exact", "load", "others %",
)  # fmt: skip


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One reduction."""

    turn: int
    tweets: int
    cores: int
    beside: bool
    with_broker: bool
    messages: int
    bytes: int
    edges_in: int
    edges_local: int
    edges_out: int
    verdict: str
    exact: bool
    seconds: float
    seconds_after_end: float
    send_seconds: float
    peak: int
    disk: int
    load: float
    # What part of the machine other processes had meanwhile: a machine that is shared is not as fast as it is alone.
    by_others: float

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [
            str(self.turn),
            f"{self.tweets:,}",
            f"{self.cores}{', beside the job' * self.beside}{', the broker too' * self.with_broker}",
            f"{self.edges_in:,}",
            f"{self.edges_local:,}",
            f"{self.edges_out:,}",
            f"{self.seconds:.1f}",
            f"{self.edges_in / self.seconds:,.0f}",
            f"{self.bytes / 1e6 / self.seconds:,.0f}",
            f"{self.seconds_after_end:.1f}" if self.beside else "",
            f"{self.peak / 2**20:,.0f}",
            f"{self.disk / 2**20:,.0f}",
            "yes" if self.exact else "[red]no[/]",
            f"{self.load:.1f}",
            f"{self.by_others:.0%}".removesuffix("%"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {**msgspec.to_builtins(self), "edges_per_second": self.edges_in / self.seconds}


def measure_pipeline(*, sizes: Sequence[int], repeat: int, once: bool, say: Say) -> Iterator[Row]:
    """A row for each reduction as it ends; `once` leaves out one core, and beside the job."""
    command = [sys.executable, "-m", "spark_apps.bench.pipeline", f"--repeat={repeat}"]
    command += [f"--tweets={size}" for size in sizes]
    command += ["--once"] * once
    for told in listen(command, "The benchmark", say):
        if "row" in told:
            yield msgspec.convert(told["row"], Row)
