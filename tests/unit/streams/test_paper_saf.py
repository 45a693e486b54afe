"""Paper 000 by its own numbers: Table II row by row, the assertions of Figure 7, the trace and replay tables.

The pictures of Figures 6, 8 and 9 are known by what the text tells of them. Stream 1 is mapped (rounded up) to streams
2 and 4; 2 is filtered to 3; 4 is gathered in a time window to 5, and that averaged to 6; 3 and 6 are joined to 7. The
trace table has 12 rows, the last four of them in stream 1; the replay table has 7 rows.
"""

from pathlib import Path

import numpy as np
import pytest

from provenance_store.streams.ancestor_functions import (
    ProvenanceQuery,
    ancestor_function,
    length_join_ancestors,
    length_window_ancestors,
    map_ancestors,
    time_join_ancestors,
    time_window_ancestors,
)
from provenance_store.streams.assertions import read_assertions, write_assertions
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.functions import Function
from provenance_store.streams.inference import Inference
from provenance_store.streams.keys import Keys
from provenance_store.streams.operators import Aggregate, Filter, Join, Map
from provenance_store.streams.query import Source, StreamQuery
from provenance_store.streams.reference import execute
from provenance_store.streams.replay import replay
from provenance_store.streams.windows import Window

BOTH = "both"
# timestamp, seqno, stream, delay, content: the rows of Figure 7, in its order.
FIGURE_7 = [
    (1279398105675, 1, "1", 0, 76.69),
    (1279398105684, 1, "2", 9, 77.00),
    (1279398105684, 1, "4", 9, 77.00),
    (1279398105693, 1, "3", 9, 77.00),
    (1279398105701, 1, "5", 17, [77.00]),
    (1279398105702, 1, "6", 1, 77.00),
    (1279398107678, 2, "1", 0, 99.49),
    (1279398107678, 2, "2", 0, 100.00),
    (1279398107678, 2, "4", 0, 100.00),
    (1279398107680, 2, "5", 2, [77.00, 100.00]),
    (1279398107681, 2, "3", 3, 100.00),
    (1279398107682, 2, "6", 2, 88.50),
    (1279398109678, 3, "1", 0, 93.28),
    (1279398109678, 3, "2", 0, 94.00),
    (1279398109678, 3, "4", 0, 94.00),
    (1279398109680, 3, "5", 2, [77.00, 100.00, 94.00]),
    (1279398109681, 3, "3", 3, 94.00),
    (1279398109682, 3, "6", 2, 90.33),
]
OUTPUT = EventKey(1279398109683, 3, "7", 1)


def flow() -> StreamQuery:
    gather, near = Window("time", 5_000, BOTH), Window("time", 1_000, BOTH)
    rounded = Function("ceil", {"field": "value"})
    return StreamQuery(
        name="figure-6",
        sources=(Source(name="1", dataset="sensor"),),
        operators=(
            Map(name="2", input="1", function=rounded, delay=None),
            Map(name="4", input="1", function=rounded, delay=None),
            Filter(
                name="3",
                input="2",
                function=Function("compare", {"field": "value", "comparison": ">", "value": 50}),
                delay=None,
            ),
            Aggregate(name="5", input="4", function=Function("list", {"field": "value"}), window=gather, delay=None),
            Map(name="6", input="5", function=Function("mean-of-list", {"field": "value"}), delay=None),
            Join(name="7", inputs=("3", "6"), windows=(near, near), delay=None),
        ),
    )


def lag(stream: str, number: int) -> int:
    """The delays of Figure 7; the join's are ours."""
    told = {(row[2], row[1]): row[3] for row in FIGURE_7}
    return told.get((stream, number), 1)


def run() -> dict[str, list[Event]]:
    first = [Event(EventKey(*row[:4]), {"value": row[4]}) for row in FIGURE_7 if row[2] == "1"]
    return execute(flow(), {"1": first}, 1 << 50, lag)


def test_the_flow_makes_figure_7() -> None:
    streams = run()
    for time, number, stream, delay, content in FIGURE_7:
        (event,) = [event for event in streams[stream] if event.key.sequence == number]
        assert event.key == EventKey(time, number, stream, delay)
        value = event.content["value"]
        assert (value if isinstance(value, list) else round(value, 2)) == content
    assert [event.key for event in streams["7"]] == [
        EventKey(t, n, "7", 1) for t, n in ((1279398105703, 1), (1279398107683, 2), (1279398109683, 3))
    ]


@pytest.mark.parametrize("keep", ["contents", "keys"])
def test_the_trace_table_has_the_rows_of_figure_8(tmp_path: Path, keep: str) -> None:
    write_assertions(tmp_path, flow(), run(), keep)  # type: ignore[arg-type]
    keys, contents = read_assertions(tmp_path)
    assert set(contents) == ({"1"} if keep == "keys" else set("1234567"))
    table = ProvenanceQuery(flow(), keys).trace([OUTPUT])
    assert [row.index for row in table] == list(range(1, 13))
    assert table[0].key == OUTPUT
    assert [row.key.stream for row in table] == ["7", "3", "6", "2", "5", "4", "4", "4", "1", "1", "1", "1"]
    assert [row.key.sequence for row in table[-4:]] == [3, 1, 2, 3]
    assert {row.index: row.ancestor_of for row in table} == {
        1: None, 2: 1, 3: 1, 4: 2, 5: 3, 6: 5, 7: 5, 8: 5, 9: 4, 10: 6, 11: 7, 12: 8,
    }  # fmt: skip
    first = {EventKey(*row[:4]) for row in FIGURE_7 if row[2] == "1"}
    assert ProvenanceQuery(flow(), keys).retrieve([OUTPUT]) == first
    assert ProvenanceQuery(flow(), keys).retrieve([OUTPUT], ["5"]) == {EventKey(1279398109680, 3, "5", 2)}


def test_the_replay_table_has_the_rows_of_figure_9(tmp_path: Path) -> None:
    streams = run()
    write_assertions(tmp_path, flow(), streams, "needed")
    keys, contents = read_assertions(tmp_path)
    inference = Inference(flow(), keys, 1 << 50)
    replayed = replay(
        inference, lambda stream, places: [contents[stream][place] for place in places], "7", np.array([2])
    )
    table = replayed.table()
    assert [index for index, _, _ in table] == list(range(1, 8))
    assert (table[0][1], table[-1][1]) == ("1", "7")
    assert {stream: len(events) for _, stream, events in table} == {
        "1": 3,
        "2": 1,
        "4": 3,
        "3": 1,
        "5": 1,
        "6": 1,
        "7": 1,
    }
    (output,) = table[-1][2]
    assert output.key == OUTPUT
    assert output.content == streams["7"][2].content == [{"value": 94.0}, {"value": 271 / 3}]
    assert {inference.keys(s).rows()[at] for s, at in replayed.ancestors("7", 2)} == {
        event.key for event in streams["1"]
    }
    assert not replayed.differences({event.key: event.content for event in streams["7"][2:]})
    assert replayed.differences({OUTPUT: [{"value": 94.0}, {"value": 90.0}]}) == [OUTPUT]


def keys(stream: str, *rows: tuple[int, int, int]) -> Keys:
    return Keys.of(stream, (EventKey(time, number, stream, delay) for time, number, delay in rows))


LEFT = keys("a", (100, 1, 0), (110, 2, 0), (120, 3, 0), (130, 4, 0))
RIGHT = keys("b", (105, 1, 0), (115, 2, 0), (125, 3, 0), (135, 4, 0))
# Made 7 ms after what stood at time 120 and was third.
MADE = keys("y", (127, 3, 7))


@pytest.mark.parametrize(
    ("function", "spans"),
    [
        (map_ancestors, [(2, 2)]),  # Map and Filter: timestamp = 127 - 7
        (time_window_ancestors(10), [(1, 2)]),  # 110 <= timestamp <= 120, both ends in
        (time_window_ancestors(9), [(2, 2)]),
        (length_window_ancestors(2), [(1, 2)]),  # 2 <= seqNo <= 3
        (length_window_ancestors(9), [(0, 2)]),
        (time_join_ancestors((10, 15)), [(1, 2), (0, 1)]),  # 110..120 of one, 105..120 of the other
        (length_join_ancestors((1, 2)), [(2, 2), (0, 1)]),  # the last one, and the last two, up to 120
    ],
)
def test_table_2_row_by_row(function: object, spans: list[tuple[int, int]]) -> None:
    found = function([LEFT, RIGHT][: len(spans)], MADE)  # type: ignore[operator]
    assert [(first.tolist(), last.tolist()) for first, last in found] == [([a], [b]) for a, b in spans]


def test_each_operation_of_table_2_has_its_ancestor_function() -> None:
    named = {stream: ancestor_function(flow(), stream) for stream in "234567"}
    assert all(named.values())


def test_an_ancestor_function_points_at_all_events_of_a_millisecond_where_inference_knows_the_one() -> None:
    query = StreamQuery(
        name="ties",
        sources=(Source(name="x", dataset="x"),),
        operators=(Map(name="y", input="x", function=Function("identity")),),
    )
    stored = {"x": keys("x", (5, 1, 0), (5, 2, 0))}
    assert len(ProvenanceQuery(query, stored).retrieve([EventKey(5, 2, "y", 0)])) == 2
    pairs = Inference(query, stored, 10).backward("y", np.array([1]))["x"]
    assert (pairs.places.tolist(), pairs.certain.tolist()) == ([1], [True])
