"""Local reducers that feed a global one: batches, partitions, and the end of a stream that does not tell it."""

from collections.abc import Iterator

from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Pair
from provenance_store.reduction.strategies.stages import Stage, StagedReducer, until_idle

IN, OUT = "urn:lake:in#1", "urn:lake:out#1"
CHAIN: list[list[Pair]] = [[("map", IN)], [("item", "map")], [("reduce", "item")], [(OUT, "reduce")]]


def test_a_stage_flushes_when_a_batch_is_full_and_never_splits_an_element() -> None:
    stage = Stage(Grouping(), 2)
    assert stage.add([("a", "x")]) == []
    assert stage.add([("b", "y"), ("b", "z"), ("b", "w")]) == [[("a", "x")], [("b", "y"), ("b", "z"), ("b", "w")]]
    assert stage.end() == []


def test_what_no_partition_can_contract_the_global_stage_does() -> None:
    reducer = StagedReducer(Grouping)
    emitted = [edge for n, element in enumerate(CHAIN) for edge in reducer.add(n % 2, element)]
    assert emitted == []
    assert reducer.end() == [(OUT, IN)]
    assert reducer.edges_local == 4


def test_a_partition_contracts_what_it_has() -> None:
    reducer = StagedReducer(Grouping)
    for n, element in enumerate(CHAIN):
        reducer.add(n // 2, element)
    assert reducer.end() == [(OUT, IN)]
    assert reducer.edges_local == 2


def test_a_full_global_batch_is_emitted_as_far_as_it_is_reduced() -> None:
    reducer = StagedReducer(Grouping, local_batch=1, global_batch=2)
    emitted = [edge for element in CHAIN for edge in reducer.add(0, element)]
    assert [*emitted, *reducer.end()] == [("item", IN), (OUT, "item")]


def test_a_batch_that_ends_inside_an_execution_costs_all_but_its_first_output() -> None:
    used, made = [("map", IN)], [("a", "map"), ("b", "map")]
    emitted = []
    for batch in (1, 3):
        reducer = StagedReducer(Grouping, local_batch=batch)
        assert reducer.add(0, used) + reducer.add(0, made) == []
        emitted.append(reducer.end())
    assert emitted == [[("a", IN), ("b", "map")], [("a", IN), ("b", IN)]]


def test_a_stream_ends_when_nothing_came_for_long_enough() -> None:
    now = 0.0

    def arrivals() -> Iterator[str | None]:
        nonlocal now
        for one in ("a", None, "b", None, None, "too late"):
            now += 3
            yield one

    assert list(until_idle(arrivals(), seconds=5, clock=lambda: now)) == ["a", "b"]


def test_a_stream_that_ends_by_itself_is_read_to_its_end() -> None:
    assert list(until_idle([1, None, 2], seconds=5, clock=lambda: 0.0)) == [1, 2]
