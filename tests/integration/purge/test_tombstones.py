"""What the lake graph keeps of purged records, through merges, prunes, backups and questions."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from provenance_store.errors import UnknownRecordError
from provenance_store.graph import tombstones
from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import Settings
from tests.reduced import write_reduced
from tests.services_fixtures import running

PURGE = "p-0123456789abcdef"
NODES = "MATCH (r:Record) WHERE r.id STARTS WITH $prefix RETURN r.id, r.dataset, r.purged, r.fingerprint ORDER BY r.id"


@pytest.fixture
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


@pytest.fixture
def word() -> str:
    """A word that nothing else in the database begins with."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tweets(word: str) -> list[str]:
    return [f"lake:{word}-tweets/1/f#{n}" for n in range(5)]


@pytest.fixture
def merged(lake_graph: LakeGraph, word: str, tweets: list[str], tmp_path: Path) -> str:
    """A count that was made from the first three tweets."""
    count = f"lake:{word}-counts/{word}/f#0"
    lake_graph.merge(write_reduced(tmp_path / "reduced", word, [(count, tweet) for tweet in tweets[:3]]))
    return count


def test_answers_go_on_naming_them(lake_graph, merged, tweets, word, monkeypatch):
    monkeypatch.setattr(tombstones, "_BATCH", 2)
    before = lake_graph.backward([merged])
    for _ in range(2):  # again changes nothing
        lake_graph.bury(tweets[1:4], PURGE, ["k:1", None, "k:3"])
    assert lake_graph.backward([merged]) == before
    assert [record.id for record in lake_graph.forward([tweets[1]]).records] == [merged]
    assert lake_graph.cypher(NODES, {"prefix": f"lake:{word}-tweets/"}).rows == [
        [tweets[0], f"{word}-tweets", None, None],
        [tweets[1], f"{word}-tweets", PURGE, "k:1"],
        [tweets[2], f"{word}-tweets", PURGE, None],
        [tweets[3], f"{word}-tweets", PURGE, "k:3"],
    ]
    # One that no run ever read has a node too, and so is known and not an error.
    assert lake_graph.forward([tweets[3]]).records == []
    with pytest.raises(UnknownRecordError):
        lake_graph.forward([tweets[4]])
    assert sorted(lake_graph.buried(tweets)) == [(tweet, PURGE, True) for tweet in tweets[1:4]]


def test_the_first_purge_is_the_one_that_is_told(lake_graph, tweets):
    lake_graph.bury(tweets[:1], PURGE, ["k:first"])
    lake_graph.bury(tweets[:2], "p-fedcba9876543210", ["k:other", "k:second"])
    assert [stone.purge for stone in lake_graph.buried(tweets[:2])] == [PURGE, "p-fedcba9876543210"]
    assert lake_graph.recognise(["k:other"]) == []


def test_one_that_comes_back_is_recognised(lake_graph, tweets, word):
    lake_graph.bury(tweets[:2], PURGE, [f"{word}:1", f"{word}:2"])
    assert lake_graph.recognise([f"{word}:2", f"{word}:9"]) == [(f"{word}:2", tweets[1], PURGE)]


def test_one_that_holds_more_than_it_may_is_told(lake_graph, tweets, neo4j_service):
    lake_graph.bury(tweets[:2], PURGE)
    connection = tombstones.Connection(neo4j_service)
    connection.write(lambda tx: tx.run("MATCH (r:Record {id: $id}) SET r.text = 'x'", id=tweets[0]).consume())
    connection.close()
    assert [stone.is_bare for stone in lake_graph.buried(tweets)] == [False, True]


def test_merges_and_prunes_leave_them(lake_graph, merged, tweets, word, tmp_path):
    lake_graph.bury([merged, tweets[0]], PURGE)
    # Neither is in the new graph of the run, nor in any other.
    other = f"lake:{word}-counts/{word}/f#9"
    lake_graph.merge(write_reduced(tmp_path / "again", word, [(other, tweets[1])], generation=1))
    lake_graph.bury([tweets[1]], PURGE)
    lake_graph.prune(dataset=f"{word}-counts")
    rows = lake_graph.cypher(NODES, {"prefix": f"lake:{word}-"}).rows
    assert [row[0] for row in rows] == [merged, tweets[0], tweets[1]]
    answer = lake_graph.forward([tweets[1]])
    assert (answer.records, answer.verdict) == ([], "partial")  # and what was pruned is still told


def test_a_tombstone_of_a_pruned_record_inherits_what_was_pruned(lake_graph, merged, tweets, word):
    lake_graph.prune(dataset=f"{word}-counts")
    lake_graph.bury([tweets[0]], PURGE)
    assert [run.run for run in lake_graph.forward([tweets[0]]).runs] == [word]


def test_backups_hold_them(tmp_path):
    tweet, alone = "lake:tweets/1/f#0", "lake:tweets/1/f#1"
    with running(tmp_path / "home", "neo4j") as settings, LakeGraph(settings) as graph:
        graph.merge(write_reduced(tmp_path / "reduced", "run", [("lake:counts/run/f#0", tweet)]))
        graph.bury([tweet, alone], PURGE, ["k:1", "k:2"])
        graph.backup(tmp_path / "backup")
        graph.restore(tmp_path / "backup", replace=True)
        assert graph.buried([tweet, alone]) == [(tweet, PURGE, True), (alone, PURGE, True)]
        assert graph.recognise(["k:2"]) == [("k:2", alone, PURGE)]
