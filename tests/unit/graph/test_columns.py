import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.graph.columns import Edges, Links, Seen, leading_to, levels_from, shortest_path

numbers = st.integers(-2, 9)
some = st.lists(numbers).map(lambda drawn: np.array(drawn, np.int64))
large = st.lists(st.integers(-3, 200_000)).map(lambda drawn: np.array(drawn, np.int64))
graphs = st.lists(st.tuples(numbers, st.integers(0, 9), st.integers(0, 1)), max_size=25)


def edges_of(rows) -> Edges:
    return Edges.concat([Edges(*np.array([row], np.int64).reshape(1, 3).T) for row in rows])


def distances(rows, start):
    """The fewest steps to all that is reachable, by fixpoint."""
    found = dict.fromkeys(start, 0)
    for step in range(len(rows) + 1):
        found |= {far: step + 1 for near, far, _ in rows if found.get(near) == step and far not in found}
    return found


@given(st.lists(large))
def test_seen_is_a_set_of_numbers_below_zero_too(parts):
    seen, expected = Seen(), set()
    for part in parts:
        assert seen.add(part).tolist() == sorted(set(part.tolist()) - expected)
        expected |= set(part.tolist())
        assert seen.holds(part).all()
    probe = np.arange(-5, 300_000, 7)
    assert seen.holds(probe).tolist() == [n in expected for n in probe.tolist()]


@given(graphs)
def test_edges_are_a_set_in_order(rows):
    edges = edges_of(rows)
    assert list(zip(edges.near, edges.far, edges.run, strict=True)) == sorted(set(rows))


@given(some, some)
def test_links_find_every_edge(leaves, asked):
    places = Links(leaves).of(np.unique(asked))
    assert sorted(places.tolist()) == [at for at, leaf in enumerate(leaves.tolist()) if leaf in set(asked.tolist())]


@given(graphs, some)
def test_levels_are_by_the_fewest_steps(rows, start):
    levels = levels_from(start, edges_of(rows))
    found = {number: depth for depth, level in enumerate(levels) for number in level.tolist()}
    assert found == distances(rows, start.tolist())


@given(graphs, some)
def test_edges_that_lead_to_what_is_kept(rows, kept):
    edges = edges_of(rows)
    wanted = {number for number in kept.tolist() if number >= 0}
    expected = [bool(wanted & distances(rows, [far]).keys()) for far in edges.far.tolist()]
    assert leading_to(kept, edges).tolist() == expected


@given(graphs, some, some)
def test_the_shortest_path(rows, start, ends):
    path = shortest_path(start, ends, edges_of(rows)).tolist()
    lengths = [depth for number, depth in distances(rows, start.tolist()).items() if number in set(ends.tolist())]
    assert len(path) == (min(lengths) + 1 if lengths else 0)
    if path:
        assert path[0] in start
        assert path[-1] in ends
        assert {*itertools.pairwise(path)} <= {(near, far) for near, far, _ in rows}
