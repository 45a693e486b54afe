"""What provenance of streams takes on disk: paper 000's two ways, ours, and an edge for every dependency."""

import tempfile
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.bench.stream_chains import contents
from provenance_store.streams.assertions import write_table
from provenance_store.streams.keys import Numbers

# The size of a key at which Table III's formulas give the paper's figures: 65 % and 95 % of the marginal cost.
PAPER_KEY = 50
_MOST_DELAY = 4


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for so many events of a size through so many components.

    `packed` is as assertions are written: differences of numbers, compressed. `plain` is 8 bytes a number and text as
    it is, as formulas count, and rows of a database take at least.
    """

    stored: Literal["packed", "plain"]
    size: int
    components: int
    events: int
    unoptimised: int
    optimised: int
    needed: int
    edges: int

    @property
    def saved(self) -> float:
        """Percent that the optimised way takes less than the unoptimised."""
        return 100 * (1 - self.optimised / self.unoptimised)

    @property
    def formula(self) -> float:
        """The same, by the paper's formulas."""
        cost = unoptimised_cost(PAPER_KEY, self.size, self.events, self.components)
        return 100 * (1 - optimised_cost(PAPER_KEY, self.size, self.events, self.components) / cost)

    def cells(self) -> list[str]:
        """As the table shows it."""
        million = 1e6
        return [
            self.stored,
            f"{self.size:,} B",
            str(self.components),
            f"{self.unoptimised / million:,.1f}",
            f"{self.optimised / million:,.1f}",
            f"{self.needed / million:,.1f}",
            f"{self.edges / million:,.1f}",
            f"{self.saved:.0f} %",
            f"{self.formula:.0f} %",
            f"{100 * (1 - self.needed / self.unoptimised):.0f} %",
        ]


COLUMNS = (
    "stored", "event", "components", "unoptimised MB", "keys MB", "needed keys MB", "every edge MB", "keys save",
    "by formula", "needed keys save",
)  # fmt: skip


def unoptimised_cost(key: int, content: int, events: int, components: int) -> int:
    """Table III: ((k + e) * m) * c."""
    return (key + content) * events * components


def optimised_cost(key: int, content: int, events: int, components: int) -> int:
    """Table III: ((k + e) * m) + ((k * m) * (c - 1))."""
    return (key + content) * events + key * events * (components - 1)


def measure_storage(sizes: list[int], most: int, events: int) -> list[Storage]:
    """Chains from 2 to `most` components, whose operators take 0 to 3 ms an event, as ways store them.

    Every component is written once, and a chain is as large as its components. All ways store the contents of first
    inputs; recording every edge means a row for each dependency beside them.
    """
    rows = []
    ways: list[tuple[Literal["packed", "plain"], int]] = [(way, size) for way in ("packed", "plain") for size in sizes]
    with tempfile.TemporaryDirectory() as scratch:
        for stored, size in ways:
            disk = Path(scratch) / stored
            payloads = [msgspec.json.encode(one).decode() for one in contents(events, size)]
            first = np.array([one["time"] for one in contents(events, size)], np.int64)
            chance = np.random.default_rng(1)
            times, delays = first, np.zeros(events, np.int64)
            sums = dict.fromkeys(("unoptimised", "optimised", "needed", "edges"), 0)
            for component in range(1, most + 1):
                full = _bytes(disk, _keys(times, delays), payloads)
                is_first = component == 1
                sums["unoptimised"] += full
                sums["optimised"] += full if is_first else _bytes(disk, _keys(times, delays))
                # Of an operator that always takes as long, keys follow from its input's.
                sums["needed"] += full if is_first else 0
                sums["edges"] += full if is_first else _bytes(disk, _edges(events))
                if component > 1:
                    rows.append(Storage(stored=stored, size=size, components=component, events=events, **sums))
                before, times = times, np.maximum.accumulate(times + chance.integers(0, _MOST_DELAY, events))
                delays = times - before
    return rows


class Windowed(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for one operator with a sliding window, beside those of its input."""

    stored: Literal["packed", "plain"]
    window: int
    events: int
    needed: int
    keys: int
    edges: int

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [
            self.stored,
            f"{self.window:,}",
            f"{self.needed / 1e3:,.0f}",
            f"{self.keys / 1e3:,.0f}",
            f"{self.edges / 1e3:,.0f}",
            f"{self.edges / self.keys:,.1f} x",
        ]


WINDOW_COLUMNS = ("stored", "window, events", "needed keys kB", "keys kB", "every edge kB", "edges over keys")


def measure_windows(windows: list[int], events: int) -> list[Windowed]:
    """A length window that moves by one event: an event made from so many."""
    times = np.array([one["time"] for one in contents(events, 5)], np.int64)
    rows = []
    ways: list[Literal["packed", "plain"]] = ["packed", "plain"]
    with tempfile.TemporaryDirectory() as scratch:
        for stored in ways:
            disk = Path(scratch) / stored
            keys = _bytes(disk, _keys(times, np.zeros(events, np.int64)))
            for window in windows:
                edges = _bytes(disk, _edges(events, window))
                rows.append(Windowed(stored=stored, window=window, events=events, needed=0, keys=keys, edges=edges))
    return rows


def _keys(times: Numbers, delays: Numbers) -> dict[str, Numbers]:
    return {"timestamp": times, "sequence": np.arange(1, len(times) + 1), "delay": delays}


def _edges(events: int, window: int = 1) -> dict[str, Numbers]:
    made = np.repeat(np.arange(1, events + 1), window)
    taken = made - np.tile(np.arange(window)[::-1], events)
    return {"sequence": made[taken > 0], "parent": taken[taken > 0]}


def _bytes(folder: Path, columns: dict[str, Numbers], contents: list[str] | None = None) -> int:
    """What columns take on disk: as assertions are written, or in a folder called so, plain."""
    table = pa.table(columns)
    if contents is not None:
        table = table.append_column("content", pa.array(contents, pa.string()))
    path = folder / "part.parquet"
    if folder.name == "plain":
        folder.mkdir(exist_ok=True)
        pq.write_table(table, path, compression="none", use_dictionary=False)
    else:
        write_table(path, table)
    return path.stat().st_size
