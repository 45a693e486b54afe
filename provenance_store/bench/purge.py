"""A purge of one handle, beside running the pipeline again without it, measured by the application that runs both."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from provenance_store.services.application import listen
from provenance_store.services.service import Say

COLUMNS = ("way", "MB read to make records anew", "CPU s to make records anew", "seconds in all", "CPU s in all")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One way to the same lake."""

    way: str
    bytes: int
    rerun_cpu: float
    seconds: float
    cpu: float
    # Records of the inputs that were read, and records that were touched, by dataset: of a purge.
    reads: int = 0
    touched: dict[str, int] = {}

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [self.way, *(f"{one:,.1f}" for one in (self.bytes / 1e6, self.rerun_cpu, self.seconds, self.cpu))]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return dict(msgspec.to_builtins(self))


def measure_purge(*, tweets: int, say: Say) -> list[Row]:
    """A row for each way; JobError where they did not come to the same lake."""
    command = [sys.executable, "-m", "spark_apps.bench.purge", f"--tweets={tweets}"]
    return [msgspec.convert(told["row"], Row) for told in listen(command, "The benchmark", say) if "row" in told]


def less_work(rows: Sequence[Row]) -> str:
    """How many times less the purge read and computed."""
    purge, again = rows
    touched = ", ".join(f"{count:,} records of {name}" for name, count in purge.touched.items())
    return (
        f"To make the derived records anew, the purge read {again.bytes / max(purge.bytes, 1):,.0f} times less and "
        f"used {again.rerun_cpu / max(purge.rerun_cpu, 1e-9):,.0f} times less of the processor. All of it, with "
        "rewriting what was selected, the lake graph, verification and certificate, used "
        f"{again.cpu / purge.cpu:,.1f} times less. "
        f"It touched {touched}, and read {purge.reads:,} records of their inputs."
    )
