import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from neo4j import Session
from neo4j.exceptions import IncompleteCommit

from provenance_store.errors import GraphError, InputError, SettingsError, UnknownRecordError
from provenance_store.graph import batches
from provenance_store.graph import merge as merge_module
from provenance_store.graph.batches import batches_of
from provenance_store.graph.connection import cypher
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.readonly import _operators
from provenance_store.graph.reduced import ReducedGraph
from provenance_store.settings import Neo4jSettings, Settings


def counts(graph: LakeGraph, word: str) -> dict[str, int]:
    """All that the database holds of a test's names, visible or not."""
    queries = {
        "records": "MATCH (r:Record) WHERE r.id STARTS WITH 'lake:' + $word RETURN count(r)",
        "runs": "MATCH (r:Run) WHERE r.id STARTS WITH $word RETURN count(r)",
        "datasets": "MATCH (d:Dataset) WHERE d.name STARTS WITH $word RETURN count(d)",
        "edges": "MATCH ()-[e:WAS_DERIVED_FROM]->() WHERE e.run STARTS WITH $word RETURN count(e)",
        "feeds": "MATCH ()-[f:FEEDS]->() WHERE f.run STARTS WITH $word RETURN count(f)",
    }
    return {name: graph.cypher(query, {"word": word}).rows[0][0] for name, query in queries.items()}


def star(word: str, size: int, version: str = "1"):
    return [(f"lake:{word}-out/{version}#{i % 3}", f"lake:{word}-in/1/f#{i}") for i in range(size)]


def test_merging_twice_changes_nothing(lake_graph, reduced, word):
    folder = reduced(f"{word}-run", star(word, 50))
    first = lake_graph.merge(folder)
    before = counts(lake_graph, word)
    again = lake_graph.merge(folder)
    assert (first.changed, again.changed) == (True, False)
    assert before == {"records": 53, "runs": 1, "datasets": 2, "edges": 50, "feeds": 1}
    assert counts(lake_graph, word) == before


def test_the_same_edges_from_another_reduction_leave_the_graph_as_it_was(lake_graph, reduced, word):
    edges = star(word, 50)
    lake_graph.merge(reduced(f"{word}-run", edges))
    before = counts(lake_graph, word)
    lake_graph.merge(reduced(f"{word}-run", edges, row_group_size=7))
    assert counts(lake_graph, word) == before


def test_a_second_reduction_replaces_the_first_with_its_verdict(lake_graph, reduced, word):
    edges = star(word, 30)
    lake_graph.merge(reduced(f"{word}-run", edges[:20], verdict="partial"))
    merged = lake_graph.merge(reduced(f"{word}-run", edges))
    assert merged.replaced
    answer = lake_graph.backward([edges[0][0]])
    assert (answer.verdict, len(answer.records)) == ("complete", 10)
    assert counts(lake_graph, word)["edges"] == 30


def test_progress_is_told_and_batches_are_split(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    told = []
    folder = reduced(f"{word}-run", [(f"lake:{word}/1#out", f"lake:{word}/1#{i}") for i in range(35)])
    lake_graph.merge(folder, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 35), (10, 35), (20, 35), (30, 35), (35, 35)]
    assert counts(lake_graph, word)["edges"] == 35


def test_a_higher_generation_replaces_and_an_older_one_is_refused(lake_graph, reduced, word):
    old, new = star(word, 40), star(word, 25, version="2")
    first = reduced(f"{word}-run", old)
    lake_graph.merge(first)
    merged = lake_graph.merge(reduced(f"{word}-run", new, generation=1))
    assert merged.replaced
    # The three old outputs and the inputs that only they had are gone.
    assert counts(lake_graph, word) == {"records": 28, "runs": 1, "datasets": 2, "edges": 25, "feeds": 1}
    with pytest.raises(UnknownRecordError):
        lake_graph.backward([old[0][0]])
    with pytest.raises(InputError, match="older generation 0"):
        lake_graph.merge(first)
    assert counts(lake_graph, word)["edges"] == 25


def test_records_that_another_run_speaks_of_outlive_a_replacement(lake_graph, reduced, word):
    shared = f"lake:{word}-in/1/f#0"
    lake_graph.merge(reduced(f"{word}-a", [(f"lake:{word}-out/1#a", shared)]))
    lake_graph.merge(reduced(f"{word}-b", [(f"lake:{word}-out/1#b", shared)]))
    lake_graph.merge(reduced(f"{word}-a", [], generation=1))
    assert [record.id for record in lake_graph.forward([shared]).records] == [f"lake:{word}-out/1#b"]
    assert counts(lake_graph, word) == {"records": 2, "runs": 2, "datasets": 2, "edges": 1, "feeds": 1}


def test_a_half_merged_run_is_invisible_and_can_be_resumed(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    edges = star(word, 50)
    known = f"lake:{word}-in/1/f#0"
    lake_graph.merge(reduced(f"{word}-first", [(f"lake:{word}-known/1#k", known)]))
    folder = reduced(f"{word}-run", edges)
    fail_after(monkeypatch, 3)
    with pytest.raises(ConnectionResetError):
        lake_graph.merge(folder)
    monkeypatch.undo()
    assert counts(lake_graph, word)["edges"] == 31
    assert [record.id for record in lake_graph.forward([known]).records] == [f"lake:{word}-known/1#k"]
    with pytest.raises(UnknownRecordError):
        lake_graph.backward([edges[0][0]])
    lake_graph.merge(folder)
    assert counts(lake_graph, word)["edges"] == 51
    assert len(lake_graph.backward([edges[0][0]]).records) == 17


def test_a_half_merged_graph_that_is_given_up_leaves_nothing(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    fail_after(monkeypatch, 3)
    with pytest.raises(ConnectionResetError):
        lake_graph.merge(reduced(f"{word}-run", star(word, 50, version="wrong")))
    monkeypatch.undo()
    lake_graph.merge(reduced(f"{word}-run", star(word, 20)))
    assert counts(lake_graph, word) == {"records": 23, "runs": 1, "datasets": 2, "edges": 20, "feeds": 1}


def test_a_replacement_shows_the_old_graph_until_it_is_whole(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    source = f"lake:{word}-in/1/f#0"
    lake_graph.merge(reduced(f"{word}-run", star(word, 50)))
    before = lake_graph.forward([source])
    second = reduced(f"{word}-run", star(word, 50, version="2"), generation=1)
    fail_after(monkeypatch, 5)
    monkeypatch.setattr(merge_module, "_switch", lambda *_: (_ for _ in ()).throw(ConnectionResetError()))
    with pytest.raises(ConnectionResetError):
        lake_graph.merge(second)
    monkeypatch.undo()
    assert lake_graph.forward([source]) == before
    lake_graph.merge(second)
    assert [record.id for record in lake_graph.forward([source]).records] == [f"lake:{word}-out/2#0"]


def test_cleaning_that_failed_is_made_up_for(lake_graph, reduced, word, monkeypatch):
    lake_graph.merge(reduced(f"{word}-run", star(word, 30)))
    second = reduced(f"{word}-run", star(word, 20, version="2"), generation=1)
    monkeypatch.setattr(merge_module, "_clean", lambda *_: (_ for _ in ()).throw(ConnectionResetError()))
    with pytest.raises(ConnectionResetError):
        lake_graph.merge(second)
    monkeypatch.undo()
    assert len(lake_graph.forward([f"lake:{word}-in/1/f#0"]).records) == 1
    assert counts(lake_graph, word)["edges"] == 50
    assert not lake_graph.merge(second).changed
    assert counts(lake_graph, word)["edges"] == 20


def test_readers_see_one_of_the_two_graphs_while_a_run_is_replaced(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 50)
    source = f"lake:{word}-in/1/f#0"

    def fan(version: str):
        middle = [(f"lake:{word}-mid/{version}#{i}", source) for i in range(300)]
        return middle + [(f"lake:{word}-out/{version}#{i}", f"lake:{word}-mid/{version}#{i}") for i in range(300)]

    lake_graph.merge(reduced(f"{word}-run", fan("v0")))
    folders = [reduced(f"{word}-run", fan(f"v{number}"), generation=number) for number in range(1, 5)]
    merger = threading.Thread(target=lambda: [lake_graph.merge(folder) for folder in folders])
    merger.start()
    answers = []
    while merger.is_alive():
        answers.append(lake_graph.forward([source]))
    merger.join()
    versions = {f"v{number}" for number in range(5)}
    for answer in answers:
        assert len(answer.records) == 600
        assert len({record.id.split("/")[1].split("#")[0] for record in answer.records} & versions) == 1


def test_two_hundred_readers_see_a_run_whole_or_not_at_all(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 20)
    source, size = f"lake:{word}-in/1/f#0", 150
    lake_graph.merge(reduced(f"{word}-first", [(f"lake:{word}-known/1#k", source)]))

    def fan(version: str):
        middle = [(f"lake:{word}-mid/{version}#{i}", source) for i in range(size)]
        return middle + [(f"lake:{word}-out/{version}#{i}", f"lake:{word}-mid/{version}#{i}") for i in range(size)]

    # It comes for the first time, then in place of itself.
    folders = [reduced(f"{word}-run", fan(f"v{generation}"), generation=generation) for generation in range(2)]
    true_answers = [
        {f"lake:{word}-known/1#k"} | {output for output, _ in edges} for edges in ([], fan("v0"), fan("v1"))
    ]
    for folder, allowed in zip(folders, itertools.pairwise(true_answers), strict=True):
        with ThreadPoolExecutor(201) as executor:
            merging = executor.submit(lake_graph.merge, folder)
            answers = list(executor.map(lambda _: lake_graph.forward([source]), range(200)))
            merging.result()
        for answer in answers:
            assert {record.id for record in answer.records} in allowed


def test_runs_that_merge_at_once_all_arrive(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 20)
    folders = [
        reduced(
            f"{word}-{n}", [(f"lake:{word}-out/{n}#{i % 7}", f"lake:{word}-in/1/f#{i * n % 101}") for i in range(100)]
        )
        for n in range(1, 5)
    ]
    failures = []

    def merge(folder):
        try:
            lake_graph.merge(folder)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=merge, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert counts(lake_graph, word)["runs"] == 4
    for n in range(1, 5):
        expected = {f"lake:{word}-in/1/f#{i * n % 101}" for i in range(100) if i % 7 == 0}
        assert {record.id for record in lake_graph.backward([f"lake:{word}-out/{n}#0"]).records} == expected


def test_datasets_feed_each_other_with_counts(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", star(word, 12), dic="count"))
    query = "MATCH (a:Dataset)-[f:FEEDS {run: $run}]->(b:Dataset) RETURN a.name, b.name, f.dic, f.edges"
    assert lake_graph.cypher(query, {"run": f"{word}-run"}).rows == [[f"{word}-in", f"{word}-out", "count", 12]]


def test_a_wrong_password_and_a_closed_port_are_told_in_a_sentence(neo4j_service):
    def graph(**changes):
        return LakeGraph(Settings(neo4j=Neo4jSettings(**changes)))

    with pytest.raises(GraphError, match="HEADWATER_NEO4J__PASSWORD"):
        graph(uri=neo4j_service.neo4j_uri, password="wrong-password")
    with pytest.raises(GraphError, match="headwater up neo4j"):
        graph(uri="bolt://127.0.0.1:1", password="x")
    with pytest.raises(SettingsError, match="HEADWATER_NEO4J__URI"):
        graph(uri="http://127.0.0.1:1", password="x")


def fail_after(monkeypatch, batches: int) -> None:
    """Let that many batches in, then lose the connection."""
    whole, left = merge_module._merge_batch, [batches]

    def merge_batch(*args):
        if not left[0]:
            raise ConnectionResetError
        left[0] -= 1
        return whole(*args)

    monkeypatch.setattr(merge_module, "_merge_batch", merge_batch)


def test_records_are_found_by_their_key_and_edges_are_not_looked_for(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", star(word, 3)))
    (batch,) = batches_of(ReducedGraph.open(reduced(word, star(word, 3))))
    parameters = {"run": word, "revision": 1, "end": 3, **batch.parameters()}
    plan = lake_graph._connection.fetch(f"EXPLAIN {cypher('merge_batch')}", parameters, timeout_seconds=60)[2].plan
    operators = [operator for operator, _ in _operators(plan)]
    assert "NodeUniqueIndexSeek(Locking)" in operators
    assert not [operator for operator in operators if "Expand" in operator or operator.endswith("Scan")]


def test_a_commit_of_unknown_outcome_is_replayed_and_changes_nothing(lake_graph, reduced, word, monkeypatch):
    """Every transaction commits, and its confirmation is lost: once, or as often as it is replayed but once."""
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    execute_write = Session.execute_write
    losses = itertools.cycle([1, 0, 1, 1, 1, 1, 0])

    def lose_confirmation(session, work, *args, **kwargs):
        done = execute_write(session, work, *args, **kwargs)
        if next(losses):
            raise IncompleteCommit
        return done

    edges = star(word, 95)
    lake_graph.merge(reduced(f"{word}-run", edges[:40]))
    monkeypatch.setattr(Session, "execute_write", lose_confirmation)
    lake_graph.merge(reduced(f"{word}-run", edges, generation=1))
    monkeypatch.undo()
    assert counts(lake_graph, word) == {"records": 98, "runs": 1, "datasets": 2, "edges": 95, "feeds": 1}
    assert feeds(lake_graph, word) == {(f"{word}-in", f"{word}-out"): 95}


def test_merges_of_the_same_graph_at_once_share_the_work(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    folder = reduced(f"{word}-run", star(word, 200))
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lake_graph.merge, [folder] * 4))
    assert counts(lake_graph, word) == {"records": 203, "runs": 1, "datasets": 2, "edges": 200, "feeds": 1}
    assert feeds(lake_graph, word) == {(f"{word}-in", f"{word}-out"): 200}


def test_a_merge_goes_on_behind_what_is_there_however_batches_were_cut(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_EDGES", 7)
    folder = reduced(f"{word}-run", star(word, 50))
    fail_after(monkeypatch, 3)
    with pytest.raises(ConnectionResetError):
        lake_graph.merge(folder)
    monkeypatch.undo()
    monkeypatch.setattr(batches, "BATCH_EDGES", 10)
    told = []
    lake_graph.merge(folder, progress=lambda done, total: told.append(done))
    assert told == [0, 21, 21, 30, 40, 50]
    assert counts(lake_graph, word)["edges"] == 50
    assert feeds(lake_graph, word) == {(f"{word}-in", f"{word}-out"): 50}


def feeds(graph: LakeGraph, word: str) -> dict[tuple[str, str], int]:
    return {(feed.source, feed.target): feed.edges for feed in graph.datasets() if feed.source.startswith(word)}


def test_the_dataset_graph_follows_a_replacement(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", star(word, 12)))
    lake_graph.merge(reduced(f"{word}-other", star(word, 5)))
    assert feeds(lake_graph, word) == {(f"{word}-in", f"{word}-out"): 17}
    lake_graph.merge(reduced(f"{word}-run", [(f"lake:{word}-new/1#1", f"lake:{word}-in/1/f#0")], generation=1))
    assert feeds(lake_graph, word) == {(f"{word}-in", f"{word}-new"): 1, (f"{word}-in", f"{word}-out"): 5}


def test_one_output_with_very_many_inputs(lake_graph, reduced, word, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_BYTES", 50_000)
    output = f"lake:{word}/1#all"
    lake_graph.merge(reduced(f"{word}-run", [(output, f"lake:{word}/1/f#{i}") for i in range(20_000)]))
    assert len(lake_graph.backward([output]).records) == 20_000
