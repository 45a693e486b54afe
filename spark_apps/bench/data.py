"""What the cases read: tweets, and the orders and customers of a shop as Parquet. Made once for each size."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.lake import layout, tweets
from provenance_store.services.service import Say

_SEED = 1
_CUSTOMERS = 50_000
_PRODUCTS = 300
_COUNTRIES = 60
_FILES = 4


def make_tweets(lake: Path, count: int, say: Say) -> layout.Version:
    """The synthetic tweets of `headwater generate tweets`."""
    say(f"data: {count:,} tweets")
    return tweets.generate(lake, count=count, seed=_SEED)


def make_orders(lake: Path, count: int, say: Say) -> layout.Version:
    """Orders of a few hundred products by customers, who are made with them."""
    about = {"generator": "bench orders", "count": count, "seed": _SEED}
    name = f"n{count}-s{_SEED}"
    chance = np.random.default_rng(_SEED)
    numbers = np.arange(_CUSTOMERS)
    customers = pa.table(
        {"customer": numbers, "country": _names("country", chance.integers(0, _COUNTRIES, _CUSTOMERS))}
    )
    _write(layout.version_of(lake, "bench_customers", name), about, customers, 1)
    version = layout.version_of(lake, "bench_orders", name)
    if not _is_there(version, about):
        say(f"data: {count:,} orders")
        orders = pa.table(
            {
                "number": np.arange(count),
                "customer": chance.integers(0, _CUSTOMERS, count),
                "product": _names("product", chance.integers(0, _PRODUCTS, count)),
                "quantity": chance.integers(1, 10, count),
                "cents": chance.integers(100, 100_000, count),
            }
        )
        _write(version, about, orders, _FILES)
    return version


def _names(kind: str, numbers: "np.typing.NDArray[np.int64]") -> pa.Array:
    known = pa.array([f"{kind}-{number:03d}" for number in range(int(numbers.max(initial=0)) + 1)])
    return known.take(pa.array(numbers))


def _write(version: layout.Version, about: dict[str, object], table: pa.Table, files: int) -> None:
    if _is_there(version, about):
        return
    rows = -(-table.num_rows // files)
    with layout.new_version(version, about) as folder:
        for number in range(files):
            pq.write_table(table.slice(number * rows, rows), folder / f"part-{number:05d}.parquet")


def _is_there(version: layout.Version, about: dict[str, object]) -> bool:
    return version.exists() and about.items() <= version.marker().items()
