import random
import time

import pytest

from provenance_store.errors import InputError, UnknownRecordError
from provenance_store.graph import traverse


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
    began = time.monotonic()
    answer = lake_graph.backward([f"lake:{word}/1#0"], sources_only=True)
    assert time.monotonic() - began < 5
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


def test_a_run_that_becomes_visible_under_a_question_is_followed_or_unknown(lake_graph, reduced, word, monkeypatch):
    output, source = f"lake:{word}/1#a", f"lake:{word}/1#b"
    folder, check = reduced(f"{word}-run", [(output, source)]), traverse._check_known

    def merge_then_check(tx, ids):
        lake_graph.merge(folder)
        check(tx, ids)

    monkeypatch.setattr(traverse, "_check_known", merge_then_check)
    assert [record.id for record in lake_graph.backward([output]).records] == [source]


def test_a_question_is_asked_again_when_a_run_is_replaced_under_it(lake_graph, reduced, word, monkeypatch):
    output, old, new = (f"lake:{word}/1#{name}" for name in ("out", "old", "new"))
    lake_graph.merge(reduced(f"{word}-run", [(output, old)]))
    folder, search, searches = reduced(f"{word}-run", [(output, new)], generation=1), traverse._search, []

    def replace_then_search(tx, question, pins):
        searches.append(pins)
        lake_graph.merge(folder)
        return search(tx, question, pins)

    monkeypatch.setattr(traverse, "_search", replace_then_search)
    assert [record.id for record in lake_graph.backward([output]).records] == [new]
    assert len(searches) == 2
