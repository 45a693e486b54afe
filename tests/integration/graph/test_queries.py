import io
import json
import operator
import random
from datetime import datetime

import pytest

from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.graph import search as search_module
from provenance_store.graph import trace as trace_module
from provenance_store.graph.search import Search
from provenance_store.graph.snapshot import OvertakenError
from provenance_store.graph.trace import Question


def brute_force(edges, starts, *, backward, depth=None):
    """Depths of all that is reachable, by fixpoint over the plain list of edges."""
    depths = dict.fromkeys(starts, 0)
    for level in range(depth if depth is not None else len(edges) + 1):
        for output, source, _ in edges:
            near, far = (output, source) if backward else (source, output)
            if depths.get(near) == level and far not in depths:
                depths[far] = level + 1
    return {record: level for record, level in depths.items() if level}


@pytest.mark.parametrize("seed", range(6))
def test_random_lakes_answer_as_brute_force_does(lake_graph, reduced, word, seed):
    rng = random.Random(seed)
    names = [f"lake:{word}-d{rng.randrange(4)}/1#{i}" for i in range(40)]
    verdicts = {}
    edges = []
    for number in range(4):
        run = f"{word}-r{number}"
        verdicts[run] = rng.choice(["complete", "complete", "unknown", "partial"])
        pairs = {tuple(sorted(rng.sample(range(40), 2), reverse=True)) for _ in range(rng.randrange(5, 25))}
        if seed == 5:  # not a DAG: runs that feed each other
            pairs |= {(b, a) for a, b in list(pairs)[:3]}
        own = [(names[a], names[b], run) for a, b in pairs]
        edges += own
        lake_graph.merge(reduced(run, [edge[:2] for edge in own], verdict=verdicts[run]))
    known = sorted({end for edge in edges for end in edge[:2]})
    order = ["complete", "unknown", "partial"]
    for _ in range(12):
        starts, depth = rng.sample(known, rng.choice([1, 1, 3])), rng.choice([None, None, 1, 2])
        for backward in (True, False):
            ask = lake_graph.backward if backward else lake_graph.forward
            near, far = (0, 1) if backward else (1, 0)
            expected = brute_force(edges, starts, backward=backward, depth=depth)
            answer = ask(starts, depth=depth)
            assert {record.id: record.depth for record in answer.records} == expected
            levels = {**expected, **dict.fromkeys(starts, 0)}
            crossed = {e for e in edges if e[near] in levels and (depth is None or levels[e[near]] < depth)}
            assert {(e.output, e.input, e.run) for e in answer.edges} == crossed
            assert {run.run for run in answer.runs} == {e[2] for e in crossed}
            worst = max((order.index(verdicts[e[2]]) for e in crossed), default=0)
            assert answer.verdict == order[worst]

            dataset = f"{word}-d1"
            to = ask(starts, depth=depth, to=dataset)
            kept = {record for record in expected if record.startswith(f"lake:{dataset}/")}
            assert {record.id for record in to.records} == kept
            assert {e for e in crossed if leads(e[far], kept, crossed, near, far)} == {
                (e.output, e.input, e.run) for e in to.edges
            }
            assert to.verdict == answer.verdict

            ends = ask(starts, depth=depth, **{"sources_only" if backward else "sinks_only": True})
            inner = {e[near] for e in edges}
            assert {record.id for record in ends.records} == set(expected) - inner


def leads(record, kept, edges, near, far) -> bool:
    seen, waiting = {record}, [record]
    while waiting:
        here = waiting.pop()
        if here in kept:
            return True
        for edge in edges:
            if edge[near] == here and edge[far] not in seen:
                seen.add(edge[far])
                waiting.append(edge[far])
    return False


def test_a_ladder_of_forty_diamonds_answers_at_once(lake_graph, reduced, word):
    edges = []
    for step in range(40):
        top, bottom = f"lake:{word}/1#{step}", f"lake:{word}/1#{step + 1}"
        for side in "ab":
            edges += [(top, f"lake:{word}/1#{step}{side}"), (f"lake:{word}/1#{step}{side}", bottom)]
    lake_graph.merge(reduced(f"{word}-run", edges))
    # By way of its 2^40 paths this would not end.
    answer = lake_graph.backward([f"lake:{word}/1#0"], sources_only=True)
    assert [(record.id, record.depth) for record in answer.records] == [(f"lake:{word}/1#40", 80)]
    assert len(answer.edges) == 160


def test_a_cycle_between_runs_ends(lake_graph, reduced, word):
    a, b = f"lake:{word}/1#a", f"lake:{word}/1#b"
    lake_graph.merge(reduced(f"{word}-1", [(a, b)]))
    lake_graph.merge(reduced(f"{word}-2", [(b, a)]))
    for answer in (lake_graph.backward([a]), lake_graph.forward([a])):
        assert [(record.id, record.depth) for record in answer.records] == [(b, 1)]
        assert len(answer.edges) == 2


def test_an_end_is_an_empty_answer_and_an_unknown_id_is_an_error(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", [(f"lake:{word}/1#a", f"lake:{word}/1#b")], verdict="partial"))
    answer = lake_graph.backward([f"lake:{word}/1#b"])
    assert (answer.records, answer.edges, answer.runs, answer.verdict) == ([], [], [], "complete")
    with pytest.raises(UnknownRecordError, match=f"never seen lake:{word}/1#c"):
        lake_graph.backward([f"lake:{word}/1#a", f"lake:{word}/1#c"])
    with pytest.raises(InputError, match="at least one"):
        lake_graph.backward([])
    with pytest.raises(InputError, match="depth 0"):
        lake_graph.backward([f"lake:{word}/1#a"], depth=0)


def test_an_id_is_never_part_of_a_query(lake_graph):
    with pytest.raises(UnknownRecordError):
        lake_graph.backward(["lake:x'}) DETACH DELETE r //"])


def test_ids_outside_the_lake_have_no_dataset(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", [(f"x:{word}-out", f"x:{word}-in")]))
    (record,) = lake_graph.backward([f"x:{word}-out"]).records
    assert (record.id, record.dataset) == (f"x:{word}-in", None)


def test_a_run_that_becomes_visible_under_a_question_is_not_in_its_answer(lake_graph, reduced, word, monkeypatch):
    output, source, other = (f"lake:{word}/1#{name}" for name in "abc")
    lake_graph.merge(reduced(f"{word}-1", [(output, source)]))
    folder = reduced(f"{word}-2", [(source, other)])
    before_each(monkeypatch, lambda: lake_graph.merge(folder))
    assert [record.id for record in lake_graph.backward([output]).records] == [source]
    assert [record.id for record in lake_graph.backward([output]).records] == [source, other]


def test_a_question_is_asked_again_when_a_run_is_replaced_under_it(lake_graph, reduced, word, monkeypatch):
    output, old, new = (f"lake:{word}/1#{name}" for name in ("out", "old", "new"))
    lake_graph.merge(reduced(f"{word}-run", [(output, old)]))
    folder = reduced(f"{word}-run", [(output, new)], generation=1)
    searches = before_each(monkeypatch, lambda: lake_graph.merge(folder))
    assert [record.id for record in lake_graph.backward([output]).records] == [new]
    assert len(searches) > 2  # a step each


def test_a_page_of_what_was_replaced_is_refused(lake_graph, reduced, word):
    output, old, new = (f"lake:{word}/1#{name}" for name in ("out", "old", "new"))
    lake_graph.merge(reduced(f"{word}-run", [(output, old)]))
    trace = lake_graph.trace(Question((output,), "backward"))
    lake_graph.merge(reduced(f"{word}-run", [(output, new)], generation=1))
    for read in (trace.records, trace.edges):
        with pytest.raises(OvertakenError, match="ask it again"):
            list(read())
    with pytest.raises(OvertakenError):
        trace.summary()


def before_each(monkeypatch, act) -> list:
    """Do something before every step of a search."""
    advance, calls = Search.advance, []

    def act_then_advance(search, tx):
        calls.append(search)
        act()
        advance(search, tx)

    monkeypatch.setattr(Search, "advance", act_then_advance)
    return calls


def test_pages_hold_the_whole_answer(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(trace_module, "PAGE", 7)
    monkeypatch.setattr(search_module, "PART", 5)
    edges = [(f"lake:{word}-out/1#{i % 4}", f"lake:{word}-in/1/f#{i}") for i in range(50)]
    edges += [(f"lake:{word}-end/1#x", f"lake:{word}-out/1#{i}") for i in range(4)]
    lake_graph.merge(reduced(f"{word}-run", edges))
    start = f"lake:{word}-end/1#x"
    trace = lake_graph.trace(Question((start,), "backward"))
    assert sorted((edge.output, edge.input) for edge in trace.edges()) == sorted(edges)
    assert [record.depth for record in trace.records()] == [1] * 4 + [2] * 50
    summary = trace.summary()
    assert [(count.dataset, count.records) for count in summary.datasets] == [(f"{word}-in", 50), (f"{word}-out", 4)]
    assert (summary.records, summary.edges, len(trace)) == (54, 54, 54)
    file = io.BytesIO()
    trace.write_json(file)
    written, whole = json.loads(file.getvalue()), json.loads(lake_graph.backward([start]).to_json())
    assert list(written) == list(whole)
    for name in ("records", "edges"):
        order = operator.itemgetter(*whole[name][0])
        assert sorted(written.pop(name), key=order) == sorted(whole.pop(name), key=order)
    assert written == whole


def test_only_runs_of_a_time_are_followed(lake_graph, reduced, word):
    a, b, c = (f"lake:{word}/1#{name}" for name in "abc")
    lake_graph.merge(reduced(f"{word}-1", [(a, b)], verdict="partial"))
    middle = lake_graph.cypher("RETURN datetime() AS now").rows[0][0]
    middle = datetime.fromisoformat(middle)
    lake_graph.merge(reduced(f"{word}-2", [(b, c)]))

    def reached(**period):
        answer = lake_graph.backward([a, b], **period)
        return [record.id for record in answer.records], answer.verdict

    assert reached() == ([c], "partial")
    assert reached(since=middle) == ([c], "complete")
    assert reached(until=middle) == ([], "partial")
    assert lake_graph.between(a, c).depends
    assert not lake_graph.between(a, c, since=middle).depends


def test_only_from_does_not_go_on_by_way_of_a_start(lake_graph, reduced, word):
    start, mixed, other, result = (f"lake:{word}/1#{name}" for name in ("start", "mixed", "other", "result"))
    lake_graph.merge(reduced(word, [(mixed, start), (mixed, other), (start, mixed), (result, start)]))
    # The start was made from something else too; but without the start, its result has no source.
    assert [record.id for record in lake_graph.only_from([start]).records()] == [result]
