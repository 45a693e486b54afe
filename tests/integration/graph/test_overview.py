"""The lake from above and records by pages: nothing twice, nothing lost, nothing of what is half there."""

import pytest

from provenance_store.errors import InputError, UnknownRunError
from provenance_store.graph import overview
from provenance_store.graph.audit import Audit
from provenance_store.graph.merge import merge_folder
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.trace import Question
from provenance_store.settings import Settings


@pytest.fixture
def star(lake_graph, reduced, word):
    """A total made from seven tweets, two of which made another total too, in a run with gaps."""
    tweets = [f"lake:{word}-tweets/1/t.jsonl#{n}" for n in range(7)]
    total, other = (f"lake:{word}-totals/1#{name}" for name in ("a", "b"))
    lake_graph.merge(reduced(f"{word}-r1", [(total, tweet) for tweet in tweets], dic="totals"))
    lake_graph.merge(
        reduced(
            f"{word}-r2", [(other, tweet) for tweet in tweets[:2]], dic="totals", verdict="partial", missing={"a": [1]}
        )
    )
    return total, other, tweets


def test_datasets_with_counts_and_the_worst_verdict(lake_graph, word, star):
    seen = lake_graph.overview()
    counts = {one.name: (one.records, one.more) for one in seen.datasets if one.name.startswith(word)}
    assert counts == {f"{word}-tweets": (7, False), f"{word}-totals": (2, False)}
    (feed,) = [feed for feed in seen.feeds if feed.source == f"{word}-tweets"]
    assert (feed.target, feed.dic, feed.runs, feed.edges, feed.verdict) == (f"{word}-totals", "totals", 2, 9, "partial")
    assert feed.merged_at.startswith("20")
    (feed,) = lake_graph.overview(runs=[f"{word}-r1"]).feeds
    assert (feed.runs, feed.edges, feed.verdict) == (1, 7, "complete")
    assert lake_graph.overview(runs=[]).datasets == []


def test_counting_stops(lake_graph, word, star, monkeypatch):
    monkeypatch.setattr(overview, "COUNTED", 3)
    counts = {one.name: (one.records, one.more) for one in lake_graph.overview().datasets}
    assert counts[f"{word}-tweets"] == (3, True)
    assert counts[f"{word}-totals"] == (2, False)


def test_records_in_pages(lake_graph, word, star):
    _, _, tweets = star
    page = lake_graph.browse(f"lake:{word}-tweets/", limit=4)
    assert ([one.id for one in page.records], page.more) == (tweets[:4], True)
    page = lake_graph.browse(f"lake:{word}-tweets/", after=page.records[-1].id, limit=4)
    assert ([one.id for one in page.records], page.more) == (tweets[4:], False)
    (one,) = lake_graph.browse(tweets[3]).records
    assert (one.id, one.dataset, one.purge) == (tweets[3], f"{word}-tweets", None)
    assert lake_graph.browse(f"lake:{word}-nobody/").records == []
    for odd in ("\U0010ffff", ""):
        with pytest.raises(InputError):
            lake_graph.browse(odd)
    assert lake_graph.browse("lake:\ud7ff").records == []


def test_a_purged_record_says_by_which_plan(lake_graph, word, star):
    _, _, tweets = star
    lake_graph.bury(tweets[:1], "p-0123456789abcdef")
    purges = [one.purge for one in lake_graph.browse(f"lake:{word}-tweets/", limit=2).records]
    assert purges == ["p-0123456789abcdef", None]


def test_what_is_half_merged_is_neither_counted_nor_listed(neo4j_service: Settings, lake_graph, reduced, word, star):
    class Killed(BaseException):
        pass

    def kill(done, total):
        raise Killed

    folder = reduced(f"{word}-r3", [(f"lake:{word}-totals/2#c", f"lake:{word}-tweets/2/t.jsonl#0")])
    with pytest.raises(Killed):
        merge_folder(lake_graph._connection, folder, kill)
    assert not lake_graph.browse(f"lake:{word}-tweets/2").records
    counts = {one.name: one.records for one in lake_graph.overview().datasets}
    assert counts[f"{word}-tweets"] == 7
    lake_graph.merge(folder)
    assert len(lake_graph.browse(f"lake:{word}-tweets/2").records) == 1


def test_a_run_tells_its_account(lake_graph, word, star):
    facts = lake_graph.describe_run(f"{word}-r2")
    assert (facts.dic, facts.verdict, facts.edges, facts.missing, facts.messages) == ("totals", "partial", 2, 1, 1)
    assert not facts.pruned
    lake_graph.prune(dataset=f"{word}-totals")
    assert lake_graph.describe_run(f"{word}-r2").pruned
    with pytest.raises(UnknownRunError, match="never seen"):
        lake_graph.describe_run(f"{word}-nothing")


@pytest.mark.parametrize("depth", [1, 2])
def test_pages_put_together_are_the_whole_answer(lake_graph, star, depth):
    total, _, _ = star
    found = lake_graph.trace(Question((total,), "backward", depth))
    pages = [found.page(first, 3) for first in range(0, len(found), 3)]
    answer = found.answer()
    assert sorted(record.id for page in pages for record in page.records) == sorted(one.id for one in answer.records)
    edges = [edge for page in pages for edge in page.edges]
    assert sorted(edges) == answer.edges
    assert len({page.moment for page in pages}) == 1


def test_pages_of_a_graph_with_edges_between_neighbours(lake_graph, reduced, word):
    a, b, c, d = (f"lake:{word}/1#{name}" for name in "abcd")
    lake_graph.merge(reduced(f"{word}-r", [(a, b), (a, c), (b, c), (c, b), (c, d), (d, a)]))
    found = lake_graph.trace(Question((a,), "backward", 2))
    pages = [found.page(first, 1) for first in range(len(found))]
    told = [edge for page in pages for edge in page.edges]
    assert sorted(told) == [edge for edge in found.answer().edges if (edge.output, edge.input) != (d, a)]
    assert found.page(99, 5).records == []


def test_moments_differ_once_something_was_merged(lake_graph, reduced, word, star):
    total, _, _ = star
    before = lake_graph.trace(Question((total,), "backward", 1)).page(0, 1).moment
    lake_graph.merge(reduced(f"{word}-r9", [(f"lake:{word}-x/1#1", f"lake:{word}-y/1#1")]))
    assert lake_graph.trace(Question((total,), "backward", 1)).page(0, 1).moment != before


def test_what_was_typed_is_not_written_down(neo4j_service: Settings, tmp_path, word, star):
    address = {"uri": neo4j_service.neo4j_uri, "password": neo4j_service.neo4j_password()}
    own = Settings(home=tmp_path / "home", neo4j=address)
    with LakeGraph(own, who="vera") as graph:
        graph.browse("someone@example.org")
        graph.overview(runs=[f"{word}-r1"])
        graph.describe_run(f"{word}-r1")
    entries = list(Audit(own).entries())
    assert [(entry.who, entry.kind, entry.asked) for entry in entries] == [
        ("vera", "browse", {}),
        ("vera", "overview", {"runs": 1}),
        ("vera", "run", {"run": f"{word}-r1"}),
    ]
