"""After any merges and prunes answers are those of brute force over what is left, and partial where something went."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.errors import UnknownRecordError
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.trace import Question
from provenance_store.model.account import worst_verdict
from provenance_store.model.ids import version_id_of
from provenance_store.settings import Settings
from tests.property.lakes import RECORDS, Lake, Merge, merges

actions = st.lists(merges | st.integers(0, RECORDS - 1), min_size=2, max_size=8)


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


def play(graph: LakeGraph, played: list[Merge | int]) -> Lake:
    lake = Lake(graph)
    for action in played:
        if isinstance(action, Merge):
            lake.merge(action)
        else:
            nodes, edges = set(lake.records), len(lake.edges)
            pruned = lake.prune(action)
            assert (pruned.edges, pruned.records) == (edges - len(lake.edges), len(nodes) - len(lake.records))
    feeds = Counter(tuple(version_id_of(end) for end in (edge.input, edge.output)) for edge in lake.edges)
    told = [feed for feed in graph.datasets() if feed.source.startswith(lake.word)]
    assert {(f"lake:{feed.source}/1", f"lake:{feed.target}/1"): feed.edges for feed in told} == feeds
    return lake


def gaps(lake: Lake, expanded: set[str], *, backward: bool) -> tuple[set[str], set[str]]:
    """The runs of pruned edges that leave the records; and those that may, as far as records made late can tell."""
    leaving = [(edge.output if backward else edge.input, edge.run) for edge in lake.pruned]
    late = {version_id_of(record) for record in expanded & lake.made_late}
    known = {run for near, run in leaving if near in expanded}
    return known, known | {run for near, run in leaving if version_id_of(near) in late}


@settings(max_examples=16)
@given(actions, st.data())
def test_answers_are_those_of_what_is_left(
    lake_graph: LakeGraph, played: list[Merge | int], data: st.DataObject
) -> None:
    lake = play(lake_graph, played)
    if not lake.records:
        return
    starts = data.draw(st.lists(st.sampled_from(lake.records), min_size=1, max_size=2, unique=True))
    for direction in ("backward", "forward"):
        backward = direction == "backward"
        depth = data.draw(st.sampled_from([None, 1, 2]))
        ends_only = data.draw(st.booleans())
        answer = lake_graph.trace(Question(tuple(starts), direction, depth, None, ends_only)).answer()

        depths = {r: d for r, d in lake.depths(starts, backward=backward).items() if depth is None or d <= depth}
        near = lambda edge, backward=backward: edge.output if backward else edge.input  # noqa: E731
        expanded = {record for record, steps in depths.items() if depth is None or steps < depth}
        crossed = {edge for edge in lake.edges if near(edge) in expanded}
        inner = {near(edge) for edge in lake.edges}
        kept = {r: d for r, d in depths.items() if d and not (ends_only and r in inner)}
        assert {record.id: record.depth for record in answer.records} == kept

        told = {run.run for run in answer.runs if run.pruned}
        # Whether a record is an end takes a look further than the depth.
        known, possible = gaps(lake, set(depths) if ends_only else expanded, backward=backward)
        assert known <= told <= possible
        assert {run.run for run in answer.runs} == {edge.run for edge in crossed} | told
        assert answer.verdict == worst_verdict([lake.verdict(crossed), *("partial" for _ in told)])


@settings(max_examples=10)
@given(actions, st.data())
def test_relations_say_where_something_went(
    lake_graph: LakeGraph, played: list[Merge | int], data: st.DataObject
) -> None:
    lake = play(lake_graph, played)
    if len(lake.records) < 2:
        return
    first, second = data.draw(st.lists(st.sampled_from(lake.records), min_size=2, max_size=2, unique=True))
    paths = lake_graph.between(first, second)
    assert paths.depends == lake.reaches(first, second)
    whole = Lake(lake_graph)
    whole.edges = lake.edges | lake.pruned
    if paths.depends != whole.reaches(first, second):
        assert paths.verdict == "partial"
    for trace, asked in (
        (lake_graph.common([first, second]), [first, second]),
        (lake_graph.only_from([first]), [first]),
    ):
        backward = trace.question.direction == "backward"
        expanded = set(lake.depths(asked, backward=backward))
        known, possible = gaps(lake, expanded, backward=backward)
        if not backward:
            # What something else went into is looked for behind all that was reached.
            behind = gaps(lake, expanded - set(asked), backward=True)
            known, possible = known | behind[0], possible | behind[1]
        assert known <= {run.run for run in trace.runs if run.pruned} <= possible


@settings(max_examples=10)
@given(actions)
def test_what_went_is_told_from_what_never_was(lake_graph: LakeGraph, played: list[Merge | int]) -> None:
    lake = play(lake_graph, played)
    for number in range(RECORDS):
        record = lake.name(number)
        if record in lake.records:
            continue
        with pytest.raises(UnknownRecordError) as raised:
            lake_graph.backward([record])
        runs = {edge.run for edge in lake.pruned if version_id_of(record) in {version_id_of(end) for end in edge[:2]}}
        assert set(re.findall(rf"{lake.word}-\d(?=[,:])", str(raised.value))) == runs
        assert ("never seen" in str(raised.value)) == (not runs)


@settings(max_examples=10)
@given(st.lists(merges, min_size=1, max_size=4), st.integers(0, RECORDS - 1))
def test_merged_again_a_run_is_back_whole(lake_graph: LakeGraph, merged: list[Merge], pruned: int) -> None:
    lake = play(lake_graph, [*merged])
    last = {one.run: one for one in merged}
    before = {record: (lake_graph.backward([record]), lake_graph.forward([record])) for record in lake.records}
    went = {run.run for run in lake.prune(pruned).runs}
    for number, one in last.items():
        if f"{lake.word}-{number}" in went:
            lake.merge(one)
    after = {record: (lake_graph.backward([record]), lake_graph.forward([record])) for record in lake.records}
    assert after == before
