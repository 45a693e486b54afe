"""Paper 002 by its own numbers: Table 4.2, Definition 11, Examples 3.1 and 5.1, and Figures 5.8 and 5.9."""

import numpy as np
import pytest

from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.functions import Function
from provenance_store.streams.inference import Inference
from provenance_store.streams.keys import Keys
from provenance_store.streams.operators import (
    Aggregate,
    Average,
    Filter,
    Interpolate,
    Join,
    Operator,
    Product,
    Project,
    Union,
)
from provenance_store.streams.properties import properties_of
from provenance_store.streams.query import Source, StreamQuery
from provenance_store.streams.reference import execute
from provenance_store.streams.windows import Trigger, Window, sliding, tumbling

THREE = Window("length", 3)
POINTS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5), (2.0, 2.0))


def query(one: Operator, *sources: str) -> StreamQuery:
    return StreamQuery(
        name="case", sources=tuple(Source(name=name, dataset=name) for name in sources), operators=(one,)
    )


def sequence(stream: str, last: int) -> list[Event]:
    """x[1], x[2] …: of one sample at each point in time, which is its number too."""
    return [Event(EventKey(n, n, stream), {"x": float(n), "at": [n % 3, n % 2]}) for n in range(1, last + 1)]


def inferred(one: Operator, number: int, *sources: str, last: int = 12) -> dict[str, list[int]]:
    """The samples that inference gives for the event at this place, checked against what really was taken."""
    asked = query(one, *sources)
    streams = execute(asked, {name: sequence(name, last) for name in sources}, last + 1)
    stored = {name: Keys.of(name, (event.key for event in streams[name])) for name in sources}
    found = Inference(asked, stored, last + 1).backward(one.name, np.array([number]))
    assert all(pairs.certain.all() for pairs in found.values())
    given = {name: [int(at) + 1 for at in pairs.places] for name, pairs in found.items()}
    true = streams[one.name][number].parents
    assert {(key.stream, key.sequence) for key in true} == {(name, n) for name, many in given.items() for n in many}
    return given


PROJECT = Project(name="y", input="x", fields=("x",), window=THREE, trigger=Trigger("events", 3, 2))
AVERAGE = Average(name="y", input="x", field="x", window=THREE, trigger=Trigger("events", 3, 2))
INTERPOLATE = Interpolate(name="y", input="x", field="x", place="at", points=POINTS, window=Window("length", 2))
PRODUCT = Product(
    name="y", inputs=("x", "z"), windows=(Window("length", 2), Window("length", 2)), trigger=Trigger("time", 2)
)


@pytest.mark.parametrize(
    ("one", "row"),
    [
        (PROJECT, ("constant", "single", "not applicable", "single", "single")),
        (AVERAGE, ("constant", "single", "not applicable", "multiple", "single")),
        (INTERPOLATE, ("constant", "single", "not applicable", "multiple", "multiple")),
        (PRODUCT, ("constant", "multiple", "multiple", "single", "multiple")),
    ],
)
def test_table_4_2(one: Operator, row: tuple[str, ...]) -> None:
    found = properties_of(one)
    assert (
        found.mapping,
        found.input_sources,
        found.contributing_sources,
        found.input_tuple_mapping,
        found.output_tuple_mapping,
    ) == row


def test_definition_11_gives_the_numbers_of_the_case_studies() -> None:
    numbers = [properties_of(one).outputs_per_input for one in (PROJECT, AVERAGE, INTERPOLATE, PRODUCT)]
    # Project n_w / n_w * 1, average 1 / n_w * n_w, interpolation m / n_w * n_w, product (2 * 2) / (2 + 2) * (1 + 1).
    assert numbers == [1, 1, 6, 2]


def test_properties_that_the_thesis_leaves_open() -> None:
    filtered = properties_of(Filter(name="y", input="x", function=Function("identity")))
    assert (filtered.mapping, filtered.output_tuple_mapping) == ("variable", "single")
    windows = (THREE, THREE)
    condition = Function("equal", {"field": "x"})
    assert properties_of(Join(name="y", inputs=("x", "z"), windows=windows, condition=condition)).mapping == "variable"
    joined = properties_of(Join(name="y", inputs=("x", "z"), windows=windows))
    assert (joined.mapping, joined.input_tuple_mapping, joined.output_tuple_mapping) == (
        "constant",
        "single",
        "multiple",
    )
    assert properties_of(Union(name="y", inputs=("x", "z"))).contributing_sources == "single"
    grouped = Aggregate(name="y", input="x", function=Function("count"), window=THREE, by=("x",))
    assert properties_of(grouped).mapping == "variable"


def test_example_3_1_the_window_at_5_holds_3_to_5() -> None:
    average = Average(name="y", input="x", field="x", window=THREE)
    assert inferred(average, 4, "x") == {"x": [3, 4, 5]}


def test_example_5_1_the_project_at_5_makes_one_event_of_each_in_its_window() -> None:
    # At n = 2 the window holds but two samples, at 5 it is full.
    assert [inferred(PROJECT, 2 + number, "x") for number in range(3)] == [{"x": [3]}, {"x": [4]}, {"x": [5]}]


def test_figure_5_8_overlapping_windows() -> None:
    window, trigger = sliding("length", 3, 1)
    project = Project(name="y", input="x", fields=("x",), window=window, trigger=trigger)
    # At 1 and 2 there are one and two samples, from 3 on three: y1[4], y2[4] and y3[4] are the events 6 to 8.
    assert [inferred(project, number, "x") for number in (6, 7, 8)] == [{"x": [2]}, {"x": [3]}, {"x": [4]}]


def test_figure_5_9_windows_that_do_not_overlap() -> None:
    window, trigger = tumbling("length", 3, offset=1)
    project = Project(name="y", input="x", fields=("x",), window=window, trigger=trigger)
    # It runs at 1, 4 and 7: y1[7], y2[7] and y3[7] are from samples 5 to 7.
    assert [inferred(project, number, "x") for number in (4, 5, 6)] == [{"x": [5]}, {"x": [6]}, {"x": [7]}]


def test_the_average_over_windows_that_overlap_and_that_do_not() -> None:
    for every, number, samples in ((1, 6, [5, 6, 7]), (3, 1, [4, 5, 6]), (4, 1, [6, 7, 8])):
        average = Average(name="y", input="x", field="x", window=THREE, trigger=Trigger("events", every))
        assert inferred(average, number, "x") == {"x": samples}


def test_the_interpolation_takes_two_samples_and_makes_six() -> None:
    # The first firing has one sample.
    assert [inferred(INTERPOLATE, number, "x") for number in (5, 6, 11, 12)] == [
        {"x": [1]}, {"x": [1, 2]}, {"x": [1, 2]}, {"x": [2, 3]},
    ]  # fmt: skip


def test_the_product_takes_one_sample_of_each_source_for_each_of_four() -> None:
    found = [inferred(PRODUCT, number, "x", "z") for number in range(4, 8)]
    assert found == [{"x": [x], "z": [z]} for x in (3, 4) for z in (3, 4)]
