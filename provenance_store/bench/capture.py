"""What capture costs: the same job with and without provenance, measured by the Spark application beside the library.

The library knows neither Spark nor Hadoop, so a process of its own runs the jobs and tells a row for each case.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from provenance_store.bench.spread import spread
from provenance_store.services.application import listen
from provenance_store.services.service import Say

CASES = (
    "rdd-narrow",
    "rdd-reduce",
    "dataframe-filter",
    "dataframe-groupby",
    "dataframe-join-aggregate",
    "hadoop",
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case: seconds of each turn, in the order in which the two ways took turns, and what was sent."""

    case: str
    load: float
    error: str = ""
    records: int = 0
    seconds_without: list[float] = []
    seconds_with: list[float] = []
    processor_without: list[float] = []
    processor_with: list[float] = []
    messages: int = 0
    bytes: int = 0
    memory_without: int = 0
    memory_with: int = 0

    @property
    def ratios(self) -> list[float]:
        """Each turn's time with provenance over its time without: neighbours in time, so under the same load."""
        return [one / other for one, other in zip(self.seconds_with, self.seconds_without, strict=True)]

    @property
    def processor_ratios(self) -> list[float]:
        """The same of processor time, which a busy machine disturbs less."""
        return [one / other for one, other in zip(self.processor_with, self.processor_without, strict=True)]

    @property
    def memory_ratio(self) -> float:
        """Peak memory with provenance over peak memory without."""
        return self.memory_with / self.memory_without if self.memory_without else 0.0

    def cells(self) -> list[str]:
        """As the table shows it."""
        if self.error:
            return [self.case, "[red]failed[/]"]
        return [
            self.case,
            spread(self.seconds_without),
            spread(self.seconds_with),
            spread(self.ratios, ".2f"),
            spread(self.processor_ratios, ".2f"),
            f"{self.bytes / self.records:,.1f}" if self.records else "",
            f"{self.messages:,}",
            f"{self.memory_without / 2**20:,.0f}",
            f"{self.memory_with / 2**20:,.0f}",
            f"{self.memory_ratio:.2f}",
            f"{self.load:.1f}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        derived = {
            "ratios": self.ratios,
            "processor_ratios": self.processor_ratios,
            "memory_ratio": self.memory_ratio,
            "bytes_per_record": self.bytes / self.records if self.records else 0.0,
        }
        return {**msgspec.to_builtins(self), **derived}


COLUMNS = (
    "case",
    "s without",
    "s with",
    "ratio",
    "ratio of processor time",
    "bytes/record",
    "messages",
    "MiB without",
    "MiB with",
    "ratio",
    "load",
)


def measure_capture(*, rows: int, tweets: int, repeat: int, cases: Sequence[str], say: Say) -> Iterator[Row]:
    """A row for each case as it is measured; a case that failed is a row with its error."""
    command = [sys.executable, "-m", "spark_apps.bench.capture", f"--rows={rows}", f"--tweets={tweets}"]
    command += [f"--repeat={repeat}", *(f"--case={case}" for case in cases)]
    for told in listen(command, "The benchmark", say):
        if "row" in told:
            yield msgspec.convert(told["row"], Row)
