"""Every question to the lake graph answers as brute force over the edges of the last graph of each run does."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.trace import Question
from provenance_store.settings import Settings
from tests.property.lakes import Edge, Lake, Merge, merges

lakes = st.lists(merges, min_size=1, max_size=6)


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


def merge_all(graph: LakeGraph, merged: list[Merge]) -> Lake:
    lake = Lake(graph)
    for one in merged:
        lake.merge(one)
    return lake


@settings(max_examples=15)
@given(lakes, st.data())
def test_answers_are_those_of_brute_force(lake_graph: LakeGraph, merged: list[Merge], data: st.DataObject) -> None:
    lake = merge_all(lake_graph, merged)
    starts = data.draw(st.lists(st.sampled_from(lake.records), min_size=1, max_size=3, unique=True))
    for direction in ("backward", "forward"):
        backward = direction == "backward"
        depth = data.draw(st.sampled_from([None, 1, 2]))
        to = data.draw(st.sampled_from([None, lake.dataset(1)]))
        ends_only = data.draw(st.booleans())
        answer = lake_graph.trace(Question(tuple(starts), direction, depth, to, ends_only)).answer()

        depths = {r: d for r, d in lake.depths(starts, backward=backward).items() if depth is None or d <= depth}
        near = lambda edge, backward=backward: edge.output if backward else edge.input  # noqa: E731
        crossed = {e for e in lake.edges if near(e) in depths and (depth is None or depths[near(e)] < depth)}
        inner = {near(edge) for edge in lake.edges}
        kept = {
            record: steps
            for record, steps in depths.items()
            if steps and not (ends_only and record in inner) and (to is None or record.startswith(f"lake:{to}/"))
        }
        assert {record.id: record.depth for record in answer.records} == kept
        assert {run.run for run in answer.runs} == {edge.run for edge in crossed}
        assert answer.verdict == lake.verdict(crossed)
        # A filter leaves the edges that lead to what it keeps; without one, those between starts belong to it too.
        told = _leading(crossed, set(kept), backward=backward) if ends_only or to else crossed
        assert {Edge(e.output, e.input, e.run) for e in answer.edges} == told


def _leading(crossed: set[Edge], kept: set[str], *, backward: bool) -> set[Edge]:
    leading: set[Edge] = set()
    wanted = set(kept)
    while True:
        more = {edge for edge in crossed if (edge.input if backward else edge.output) in wanted} - leading
        if not more:
            return leading
        leading |= more
        wanted |= {edge.output if backward else edge.input for edge in more}


@settings(max_examples=15)
@given(lakes, st.data())
def test_ways_between_two_records(lake_graph: LakeGraph, merged: list[Merge], data: st.DataObject) -> None:
    lake = merge_all(lake_graph, merged)
    output, source = data.draw(st.lists(st.sampled_from(lake.records), min_size=2, max_size=2, unique=True))
    paths = lake_graph.between(output, source)
    assert paths.depends == lake.reaches(output, source)
    on_a_way = {e for e in lake.edges if lake.reaches(output, e.output) and lake.reaches(e.input, source)}
    assert {Edge(e.output, e.input, e.run) for e in paths.edges()} == on_a_way
    assert {record.id for record in paths.records()} == {e.input for e in on_a_way} - {output}
    shortest = paths.shortest()
    if paths.depends:
        assert (shortest[0], shortest[-1]) == (output, source)
        assert len(shortest) == lake.depths([output], backward=True)[source] + 1
        assert set(itertools.pairwise(shortest)) <= {edge[:2] for edge in lake.edges}
    else:
        assert shortest == []


@settings(max_examples=15)
@given(lakes, st.data())
def test_what_records_have_in_common(lake_graph: LakeGraph, merged: list[Merge], data: st.DataObject) -> None:
    lake = merge_all(lake_graph, merged)
    starts = data.draw(st.lists(st.sampled_from(lake.records), min_size=2, max_size=3, unique=True))
    found = [lake.depths([start], backward=True) for start in starts]
    # A record is not among what it was itself made from, not even in a cycle.
    expected = {
        record: max(depths[record] for depths in found)
        for record in lake.records
        if all(depths.get(record, 0) for depths in found)
    }
    trace = lake_graph.common(starts)
    assert {record.id: record.depth for record in trace.records()} == expected


@settings(max_examples=15)
@given(lakes, st.data())
def test_what_comes_from_records_alone(lake_graph: LakeGraph, merged: list[Merge], data: st.DataObject) -> None:
    lake = merge_all(lake_graph, merged)
    starts = data.draw(st.lists(st.sampled_from(lake.records), min_size=1, max_size=4, unique=True))

    def sources_elsewhere(record: str) -> bool:
        """Whether it has a source that is not a start, or goes in a circle that a start does not feed."""
        seen, waiting = {record}, [record]
        while waiting:
            here = waiting.pop()
            inputs = {edge.input for edge in lake.edges if edge.output == here} - set(starts)
            if here not in made or not (inputs or any(edge.output == here for edge in lake.edges)):
                return True
            seen |= (new := inputs - seen)
            waiting += new
        return False

    made = set(lake.depths(starts, backward=False)) - set(starts)
    expected = {record for record in made if not sources_elsewhere(record)}
    trace = lake_graph.only_from(starts)
    assert {record.id for record in trace.records()} == expected
