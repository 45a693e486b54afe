"""Totals per country, and each country's three largest orders, of orders that were not cancelled, of customers that
confirmed their account. Of orders of the same size, the one with the smaller number goes first."""

from collections.abc import Sequence

import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from spark_apps.dics.checks.reading import read_table

_PLACES = 3


def expect(inputs: Sequence[Version], output: Version) -> pl.DataFrame:
    """All records that the version should hold: it is one of two datasets."""
    sold = _sold(*inputs)
    match output.dataset:
        case "country_totals":
            return _totals(sold).collect()
        case "top_orders":
            return _largest(sold).collect()
    raise InputError(f"An order report has no dataset {output.dataset!r}.")


def _sold(orders: Version, customers: Version) -> pl.LazyFrame:
    ordered = read_table(orders, ["order_id", "customer_id", "status", "cents"])
    confirmed = read_table(customers, ["customer_id", "country", "confirmed"]).filter("confirmed")
    return ordered.filter(pl.col("status") != "cancelled").join(confirmed, on="customer_id")


def _totals(sold: pl.LazyFrame) -> pl.LazyFrame:
    cents = pl.col("cents")
    return sold.group_by("country").agg(
        orders=pl.len(),
        customers=pl.col("customer_id").n_unique(),
        # Of nothing but nulls, a sum is null.
        cents=pl.when(cents.count() > 0).then(cents.sum()),
    )


def _largest(sold: pl.LazyFrame) -> pl.LazyFrame:
    ordered = sold.sort(
        "country", "cents", "order_id", descending=[False, True, False], nulls_last=[False, True, False]
    )
    placed = ordered.with_columns(place=pl.int_range(1, pl.len() + 1).over("country"))
    return placed.filter(pl.col("place") <= _PLACES).select("country", "place", "order_id", "cents")
