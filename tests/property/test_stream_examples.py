"""The papers' queries find what brute force finds, each result from the same source events, in any order of arrival."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.streams.examples import EXAMPLES, Example
from provenance_store.streams.examples.common import mix
from provenance_store.streams.operators import Process
from tests.stream_examples import as_told, by_engine, by_reference, by_replay
from tests.stream_oracles import ORACLES


@st.composite
def arrivals(draw: st.DrawFn, example: Example) -> list[dict[str, Any]]:
    """Source events of a random seed, in an order in which they may come."""
    seeds = st.integers(0, 10_000)
    keys = draw(st.sampled_from([1, 3, 9, 14]))
    count = keys * draw(st.sampled_from([0, 1, 5, 30, 60])) + draw(st.integers(0, 20))
    made = example.generate(count, draw(seeds), keys)
    return list(mix(made, example.query.sources[0].lateness, draw(seeds)))


def test_every_example_has_an_oracle() -> None:
    assert set(ORACLES) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=15)
@given(st.data())
def test_reference_and_engine_find_what_brute_force_finds(name: str, data: st.DataObject) -> None:
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    expected = as_told(ORACLES[name](events))
    assert by_reference(example, events) == expected
    batch = data.draw(st.integers(1, 200))
    assert by_engine(example, events, batch, ()) == expected


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("seed", [1, 2])
def test_of_a_thousand_events_some_are_found(name: str, seed: int) -> None:
    example = EXAMPLES[name]
    events = list(example.events(1_000, seed))
    expected = as_told(ORACLES[name](events))
    assert all(expected.values())
    assert by_reference(example, events) == expected
    assert by_engine(example, events, 300, example.by) == expected


def _remembers(example: Example) -> bool:
    return any(isinstance(one, Process) for one in example.query.operators)


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if not _remembers(example)])
@settings(max_examples=10)
@given(st.data())
def test_a_replay_finds_the_same(name: str, data: st.DataObject) -> None:
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    assert by_replay(example, events) == as_told(ORACLES[name](events))


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.by])
@settings(max_examples=15)
@given(st.data())
def test_each_key_on_its_own_finds_the_same(name: str, data: st.DataObject) -> None:
    """So a query may be spread out by these fields."""
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    assert by_engine(example, events, data.draw(st.integers(1, 200)), example.by) == as_told(ORACLES[name](events))
