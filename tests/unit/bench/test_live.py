"""The synthetic experiments of live provenance: they feed what they say, and all ways tell the same graph."""

import time
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from provenance_store.bench.live_delay import measure_delays
from provenance_store.bench.live_delivery import Delivery
from provenance_store.bench.live_flow import Flow
from provenance_store.bench.live_on_demand import WAYS, measure_on_demand
from provenance_store.bench.live_rates import measure_ank1
from provenance_store.bench.live_synthetic import Measured, draw_live
from provenance_store.streams.live import Element, Expired


@pytest.mark.parametrize(("size", "overlap", "shared"), [(10, 0, 0), (10, 25, 2), (50, 50, 25), (100, 75, 75)])
def test_results_share_as_much_provenance_as_told(size: int, overlap: int, shared: int) -> None:
    flow = Flow(size=size, overlap=overlap)
    results = [one for _, made in flow.steps(5, 2) for one in made]
    assert [len(one.sources) for one in results] == [size] * 5
    assert {len(set(one.sources) & set(other.sources)) for one, other in pairwise(results)} == {shared}
    assert max(one.time - time for one in results for _, time in one.sources) == flow.reach
    assert flow.alive_after(1) == {source for source, _ in set(results[1].sources) & set(results[2].sources)}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_delivers_the_same_graph(way: str, tmp_path: Path) -> None:
    flow = Flow(size=10, overlap=50)
    told = deliver(way, flow, tmp_path / "elements.jsonl")
    assert told == deliver("ANK-1", flow, tmp_path / "expected.jsonl")
    assert len(told) == 40 * (1 + 10 + 1) + 40 * 5 + 5 + sum(one[0] is Expired and "readings" in one[1] for one in told)


def deliver(way: str, flow: Flow, path: Path) -> set[tuple[object, ...]]:
    delivery = Delivery(path)
    taking = WAYS[way](flow.reach, delivery)
    for watermark, results in flow.steps(40, 4):
        taking.take(watermark, results, time.perf_counter())
    taking.finish()
    delivery.close()
    assert delivery.results == 40
    assert delivery.waited > 0
    elements = msgspec.json.Decoder(Element).decode_lines(path.read_bytes())
    told = [(type(one), *msgspec.structs.astuple(one)[1:]) for one in elements]
    assert len(told) == len(set(told))
    return set(told)


def test_labels_come_sooner_where_it_is_known_what_is_held() -> None:
    by_reach, exact = (row.means for row in measure_delays(Flow(size=20, overlap=50), 50))
    assert exact["source label"] < by_reach["source label"] < 1.2
    assert by_reach["edge"] == by_reach["sink label"] == 0
    assert 0 < by_reach["sink"] < by_reach["source"] < 1.1


def test_all_is_timed_shown_and_drawn(tmp_path: Path) -> None:
    flows = [Flow(size=10, overlap=25, queries=count) for count in (1, 2)]
    rates = list(measure_ank1(flows, [1, 2], 4_000, 1, lambda _: None))
    assert [(row.flow.queries, row.parallel) for row in rates] == [(1, 1), (2, 1), (2, 2)]
    assert all(row.rate > 0 and row.turns[0].state > 0 for row in rates)
    measured = Measured(
        delays=measure_delays(flows[0], 20),
        sizes=rates[:1],
        queries=rates,
        on_demand=list(measure_on_demand([10], 0.2, 1, lambda _: None)),
    )
    assert [row.way for row in measured.on_demand] == list(WAYS)
    assert all(len(columns) == len(row) for _, columns, rows in measured.tables() for row in rows)
    assert measured.to_dict()["queries"][0]["flow"]["size"] == 10
    draw_live(measured, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "live-latency.png",
        "live-queries.png",
        "live-sizes.png",
    ]


def test_ways_of_provenance_are_measured_beside_none() -> None:
    from provenance_store.bench.live_queries import COLUMNS, SPACE_COLUMNS, WAYS, measure_costs, measure_spaces

    (cost,) = measure_costs(["vehicle-tracking"], 1_500, 1, print)
    assert set(cost.seconds) == set(cost.steps) == set(WAYS)
    assert len(cost.cells()) == len(COLUMNS)
    assert cost.sources > 1
    (space,) = measure_spaces(["vehicle-tracking"], 1_500, print)
    assert len(space.cells()) == len(SPACE_COLUMNS)
    assert 0 < space.keys < space.source
    assert space.references > 0
    assert space.checkpoints >= space.checkpoint > 0
