"""The stream benchmarks: the paper's formulas give the paper's figures, and what is measured is measured."""

import pytest

from provenance_store.bench.stream_storage import (
    PAPER_KEY,
    measure_storage,
    measure_windows,
    optimised_cost,
    unoptimised_cost,
)
from provenance_store.bench.stream_throughput import WAYS, measure_engine
from provenance_store.bench.streams import Measured


@pytest.mark.parametrize(("size", "saved", "marginal"), [(100, 60, 65), (1024, 85, 95)])
def test_the_formulas_of_table_3_give_the_papers_figures(size: int, saved: int, marginal: int) -> None:
    whole = unoptimised_cost(PAPER_KEY, size, 100_000, 10)
    less = optimised_cost(PAPER_KEY, size, 100_000, 10)
    assert 100 * (whole - less) / whole == pytest.approx(saved, abs=1)
    more = unoptimised_cost(PAPER_KEY, size, 100_000, 11) - whole
    assert more == (PAPER_KEY + size) * 100_000
    little = optimised_cost(PAPER_KEY, size, 100_000, 11) - less
    assert little == PAPER_KEY * 100_000
    assert 100 * (1 - little / more) == pytest.approx(marginal, abs=2)


def test_storage_grows_by_keys_alone_and_needed_keys_not_at_all() -> None:
    rows = [row for row in measure_storage([100], 4, 500) if row.stored == "plain"]
    assert [row.components for row in rows] == [2, 3, 4]
    assert rows[0].needed == rows[-1].needed < rows[-1].optimised < rows[-1].unoptimised
    # Three numbers of eight bytes an event, and what a Parquet file takes itself.
    assert rows[1].optimised - rows[0].optimised == pytest.approx(3 * 8 * 500, rel=0.2)
    assert rows[1].unoptimised - rows[0].unoptimised > 100 * 500


def test_edges_of_a_window_are_as_many_as_its_events() -> None:
    small, large = (row for row in measure_windows([10, 100], 2_000) if row.stored == "plain")
    assert large.edges > 8 * small.edges
    assert small.keys == large.keys


def test_every_way_is_timed_and_shown() -> None:
    measured = Measured(
        storage=measure_storage([100], 2, 200),
        windows=measure_windows([10], 200),
        throughput=list(measure_engine([2], [0.0, 0.1], 300, 1, lambda _: None)),
    )
    assert [set(row.seconds) for row in measured.throughput] == [set(WAYS)] * 2
    assert all(seconds[0] > 0 for row in measured.throughput for seconds in row.seconds.values())
    assert all(len(columns) == len(row) for _, columns, rows in measured.tables() for row in rows)
    assert measured.to_dict()["throughput"][0]["components"] == 2
