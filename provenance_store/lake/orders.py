"""A synthetic shop: `orders` and `customers`, as Parquet. Everything is invented, and follows from the seed alone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake import catalogue, layout

ORDERS = "orders"
CUSTOMERS = "customers"
COUNTRIES = ("AT", "BR", "CA", "DE", "ES", "FR", "GB", "IN", "JP", "KE", "MX", "NL", "PL", "SE", "US", "ZA")
STATUSES = ("paid", "shipped", "cancelled", "returned")

_DECLARED = Path(__file__).with_name("orders.toml")
_ORDERS_PER_CUSTOMER = 20
_ROWS_PER_FILE = 500_000
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def generate(
    root: Path,
    *,
    count: int,
    seed: int,
    version: str | None = None,
    files: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> layout.Version:
    """Write `orders` and `customers` under `root`, and what they are into its catalogue; again changes nothing."""
    layout.refuse_remote(root)
    if count < 0:
        raise InputError(f"{count} orders cannot be made: give a count of 0 or more.")
    parts = files or max(2, -(-count // _ROWS_PER_FILE))
    name = version or f"n{count}-s{seed}"
    about = {"generator": "orders", "count": count, "seed": seed, "files": parts}
    orders = layout.version_of(root, ORDERS, name)
    catalogue.extend(root, _DECLARED)
    customers = max(1, count // _ORDERS_PER_CUSTOMER)
    chance = np.random.default_rng(seed)
    made = {CUSTOMERS: _customers(chance, customers), ORDERS: _orders(chance, count, customers)}
    for dataset, frame in made.items():
        target = layout.version_of(root, dataset, name)
        if layout.was_made(target, about):
            continue
        with layout.new_version(target, about) as folder:
            for number in range(parts):
                start, end = frame.height * number // parts, frame.height * (number + 1) // parts
                frame[start:end].write_parquet(folder / f"part-{number:05d}.parquet")
                if dataset == ORDERS:
                    progress(end - start)
    return orders


def _customers(chance: Any, count: int) -> pl.DataFrame:
    numbers = pl.Series(range(count), dtype=pl.Int64)
    return pl.DataFrame(
        {
            "customer_id": numbers,
            "email": pl.select(pl.format("customer{}@example.org", numbers)).to_series(),
            "country": _choose(chance, COUNTRIES, count),
            # Some never confirmed their account; a report leaves them out.
            "confirmed": chance.random(count) < 0.95,  # noqa: PLR2004 - a share, told here
        }
    )


def _orders(chance: Any, count: int, customers: int) -> pl.DataFrame:
    # A few customers order much, most little; and one in fifty orders is of nobody we know.
    buyer = (customers * chance.random(count) ** 2).astype(np.int64)
    stranger = chance.random(count) < 0.02  # noqa: PLR2004 - a share, told here
    days = chance.integers(0, 300, count)
    return pl.DataFrame(
        {
            "order_id": pl.Series(range(count), dtype=pl.Int64),
            "customer_id": np.where(stranger, customers + buyer, buyer),
            "day": pl.Series(days).cast(pl.Int64) * timedelta(days=1) + _FIRST_DAY,
            "status": _choose(chance, STATUSES, count),
            "cents": chance.integers(100, 50_000, count),
        }
    ).with_columns(pl.col("day").dt.date())


def _choose(chance: Any, names: tuple[str, ...], count: int) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(chance.integers(0, len(names), count))
