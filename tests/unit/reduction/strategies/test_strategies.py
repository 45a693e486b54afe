"""Each strategy on streams small enough to follow by hand. Records of the lake are kept, everything else goes."""

import pytest

from provenance_store.model.document import Edge
from provenance_store.model.message import MANIFEST, Message
from provenance_store.reduction.strategies.elements import group_edges, read_elements
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.modes import MODES
from provenance_store.reduction.strategies.port import Element, Pair, Strategy
from provenance_store.reduction.strategies.serial import Serial
from provenance_store.reduction.strategies.window import SlidingWindow

I1, I2, O1, O2 = (f"urn:lake:{name}" for name in ("in#1", "in#2", "out#1", "out#2"))

# A map with two items, and a reduce of each.
USED = [("map", I1)]
MADE = [("a", "map"), ("b", "map")]
REDUCED = [[("reduce-a", "a")], [(O1, "reduce-a")], [("reduce-b", "b")], [(O2, "reduce-b")]]
IN_ORDER = [USED, MADE, *REDUCED]
TRUTH = {(O1, I1), (O2, I1)}


def reduce(strategy: Strategy, elements: list[list[Pair]]) -> set[Pair]:
    for element in elements:
        strategy.add(element)
    return {edge for group in strategy.flush() for edge in group}


@pytest.mark.parametrize("mode", MODES)
def test_in_order_everything_is_found_and_nothing_else_is_left(mode: str) -> None:
    assert reduce(MODES[mode](), IN_ORDER) == TRUTH


@pytest.mark.parametrize("mode", MODES)
def test_a_flush_forgets(mode: str) -> None:
    strategy = MODES[mode]()
    assert reduce(strategy, IN_ORDER)
    assert strategy.flush() == []


@pytest.mark.parametrize("mode", MODES)
def test_paths_are_cut_at_a_record(mode: str) -> None:
    assert reduce(MODES[mode](), [[(I2, I1)], [(O1, I2)]]) == {(I2, I1), (O1, I2)}


def test_a_vertex_goes_too_early_where_its_edges_are_not_grouped() -> None:
    one_by_one = [[edge] for element in IN_ORDER for edge in element]
    assert reduce(Grouping(), one_by_one) & TRUTH == {(O1, I1)}
    assert reduce(SlidingWindow(), one_by_one) == TRUTH


def test_groups_may_come_in_any_order() -> None:
    assert reduce(Grouping(), IN_ORDER[::-1]) == TRUTH
    assert reduce(Grouping(), [MADE, *REDUCED, USED]) == TRUTH


def test_an_item_that_two_executions_use_is_gone_after_the_first() -> None:
    shared = [USED, MADE, [("first", "a")], [(O1, "first")], [("second", "a")], [(O2, "second")]]
    assert reduce(Grouping(), shared) & TRUTH == {(O1, I1)}
    assert reduce(SlidingWindow(), shared) & TRUTH == TRUTH
    assert reduce(Serial(), shared) & TRUTH == TRUTH


def test_a_window_remembers_no_further_than_its_size() -> None:
    between = [[(f"x{n}", f"y{n}")] for n in range(5)]
    apart = [USED, MADE[:1], *between, MADE[1:], *REDUCED]
    assert reduce(SlidingWindow(7), apart) & TRUTH == TRUTH
    assert reduce(SlidingWindow(5), apart) & TRUTH == {(O1, I1)}


def test_a_window_counts_copies() -> None:
    window = SlidingWindow(2)
    assert reduce(window, [USED, USED, [("x", "y")], MADE[:1], [("z", "map")]]) >= {("a", I1)}


def test_serial_has_no_memory_of_what_came_too_early() -> None:
    assert reduce(Serial(), [MADE, USED, *REDUCED]) & TRUTH == set()
    assert reduce(Serial(), [USED, MADE, *REDUCED[2:], *REDUCED[1::-1]]) & TRUTH == {(O2, I1)}


@pytest.mark.parametrize("mode", MODES)
def test_a_cycle_ends(mode: str) -> None:
    cycle = [[("a", "b")], [("b", "c")], [("c", "a")], [("a", I1)], [(O1, "b")], [("a", "a")]]
    assert reduce(MODES[mode](), cycle) - {(O1, I1)} <= {(a, b) for a in "abc" for b in (*"abc", I1)} | {
        (O1, one) for one in "abc"
    }


def test_a_document_is_told_execution_by_execution() -> None:
    edges = [
        Edge("used", "f", "i"),
        Edge("used", "g", "c"),
        Edge("used", "f", "j"),
        Edge("wasGeneratedBy", "o", "g"),
        Edge("wasGeneratedBy", "p", "f"),
        Edge("wasGeneratedBy", "q", "h"),
        Edge("wasDerivedFrom", "o", "p"),
        Edge("hadMember", "c", "p"),
    ]
    expected: list[Element] = [
        [("c", "p")],
        [("f", "i"), ("f", "j")],
        [("p", "f")],
        [("g", "c")],
        [("o", "g")],
        [("q", "h")],
        [("o", "p")],
    ]
    assert group_edges(edges) == expected


def test_a_manifest_has_no_elements() -> None:
    value = b'{"prefix":{"x":"urn:x:"},"wasDerivedFrom":{"_:1":{"prov:generatedEntity":"x:a","prov:usedEntity":"x:b"}}}'
    messages = [Message({"kind": MANIFEST}, b'{"attempts":{}}'), Message({}, value)]
    assert list(read_elements(messages)) == [[("urn:x:a", "urn:x:b")]]
