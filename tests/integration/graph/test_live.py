"""Live provenance in a real Neo4j: each thing once and in order, whatever comes twice, until the run is finished."""

import itertools
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from provenance_store.errors import InputError, MessageError, UnknownRecordError
from provenance_store.graph.connection import Connection
from provenance_store.graph.following import Progress, take
from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import Settings
from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Expired, SinkVertex, SourceVertex
from provenance_store.transport.following import Followed
from tests.live_stream import REACH, Truth, interleaved, message, tell_stream


@pytest.fixture
def graph(lake_graph: LakeGraph) -> LakeGraph:
    lake_graph.ensure_schema()
    return lake_graph


def held(graph: LakeGraph, run: str) -> tuple[set, Counter, set]:
    """Vertices, edges and live sources of a run, whose datasets are named after it."""
    vertices = graph.cypher(
        "MATCH (r:Record) WHERE r.dataset IN [$run + '-in', $run + '-out'] RETURN r.id", {"run": run}
    ).rows
    edges = graph.cypher(
        "MATCH (o)-[e:WAS_DERIVED_FROM {run: $run}]->(i) MATCH (r:Run {id: $run, revision: e.revision}) "
        "RETURN o.id, i.id",
        {"run": run},
    ).rows
    live = graph.cypher("MATCH (r)-[:LIVE_IN]->(:Run {id: $run}) RETURN r.id", {"run": run}).rows
    assert len(vertices) == len({row[0] for row in vertices})
    assert len(live) == len({row[0] for row in live})
    return {row[0] for row in vertices}, Counter((o, i) for o, i in edges), {row[0] for row in live}


def run_of(graph: LakeGraph, run: str) -> dict:
    ((known,),) = graph.cypher("MATCH (r:Run {id: $run}) RETURN properties(r)", {"run": run}).rows
    return known


def check(graph: LakeGraph, run: str, truth: Truth) -> None:
    assert held(graph, run) == (truth.vertices, truth.edges, truth.live)
    assert max(truth.edges.values(), default=1) == 1
    known = run_of(graph, run)
    assert (known["watermark"], known["reach"]) == (min(truth.watermarks.values()), REACH)
    assert known["edges"] == truth.edges.total()
    fed = [feed.edges for feed in graph.datasets() if feed.source == f"{run}-in" and feed.target == f"{run}-out"]
    assert sum(fed) == truth.edges.total()


@pytest.mark.parametrize("seed", range(2))
def test_each_thing_once_and_in_order(graph, word, seed):
    """Message by message, of two buckets at random and with repeats, the graph is what the rules say."""
    rng = random.Random(seed)
    buckets = [tell_stream(word, number, rng) for number in range(2)]
    truth, places = Truth(), {}
    for one in interleaved(buckets, rng):
        is_new = (one.step, one.part) > places.get(one.bucket, (-1, -1))
        before = held(graph, word)[1] if is_new else None
        applied = graph.apply_live([one])
        assert (applied.messages, applied.repeated) == (int(is_new), int(not is_new))
        if is_new:
            expired = set(truth.expired)
            places[one.bucket] = (one.step, one.part)
            truth.take(one)
            new = held(graph, word)[1] - before
            assert not {end for edge in new for end in edge} & expired
        check(graph, word, truth)
    assert not truth.live
    assert run_of(graph, word)["watermark"] == END


@pytest.mark.parametrize("seed", range(2))
def test_many_at_once_and_every_commit_of_unknown_outcome(graph, word, seed, monkeypatch):
    """Taken in together, with every transaction done again after it was committed, as after an unknown outcome."""
    rng = random.Random(seed)
    buckets = [tell_stream(word, number, rng, ends=False) for number in range(2)]
    through = Connection.write
    monkeypatch.setattr(Connection, "write", lambda own, work: [through(own, work), through(own, work)][1])
    truth, left = Truth(), [list(bucket) for bucket in buckets]
    while any(left):
        bucket = rng.choice([bucket for bucket in left if bucket])
        some = bucket[: rng.randint(1, 4)]
        del bucket[: len(some)]
        assert graph.apply_live(some).repeated == len(some)
        for one in some:
            truth.take(one)
        check(graph, word, truth)


def test_a_consumer_that_dies_before_it_commits_its_offsets(graph, word):
    """What it had applied comes again, with more behind it; another member that is late with it changes nothing."""
    rng = random.Random(7)
    sent = interleaved([tell_stream(word, number, rng) for number in range(3)], rng)
    came = [Followed("t", one.bucket, number, one.to_message()) for number, one in enumerate(sent)]
    truth = Truth()
    for one in {(one.bucket, one.step, one.part): one for one in sent}.values():
        truth.take(one)
    progress = Progress()
    for begin, end in ((0, 10), (5, 20), (0, 3), (12, len(came)), (len(came) - 9, len(came))):
        assert not list(take(graph, came[begin:end], progress))
    check(graph, word, truth)
    assert progress.messages == sum(len({(m.step, m.part) for m in sent if m.bucket == b}) for b in range(3))


def test_buckets_in_parallel(neo4j_service: Settings, graph, word):
    buckets = [tell_stream(word, number, random.Random(number), steps=12) for number in range(4)]
    truth = Truth()
    for one in itertools.chain(*buckets):
        truth.take(one)

    def follow(messages):
        with LakeGraph(neo4j_service) as own:
            for one in messages:
                own.apply_live([one])

    with ThreadPoolExecutor(6) as threads:
        # Two of the buckets have two followers, as for a moment after partitions were handed over.
        list(threads.map(follow, [*buckets, *buckets[:2]]))
    check(graph, word, truth)
    assert len(graph.cypher("MATCH (p:LiveProgress {run: $run}) RETURN p", {"run": word}).rows) == 4


def small(word: str) -> list:
    """One result from two sources, told in two messages; the first source expires."""
    first, second = (f"lake:{word}-in/{word}/p.jsonl#{n}" for n in (1, 2))
    result = f"lake:{word}-out/{word}/p.jsonl#1"
    begin = [SourceVertex(0, first, -50), SourceVertex(0, second, 10), SinkVertex(0, result, 5)]
    rest = [Edge(0, result, first), Edge(0, result, second), Expired(0, result), Expired(60, first)]
    return [message(word, begin), message(word, rest, part=1, watermark=60)]


def test_answers_see_it_at_once(graph, word):
    first, second, result = f"lake:{word}-in/{word}/p.jsonl#1", f"lake:{word}-in/{word}/p.jsonl#2", None
    begin, rest = small(word)
    result = begin.elements[2].id
    graph.apply_live([begin])
    assert graph.backward([result]).records == []
    graph.apply_live([rest])
    answer = graph.backward([result])
    assert [one.id for one in answer.records] == [first, second]
    assert {(edge.known, edge.exact) for edge in answer.edges} == {("captured", True)}
    assert answer.verdict == "unknown"
    assert [(run.run, run.dic, run.live) for run in answer.runs] == [(word, f"{word}-query", True)]
    assert [one.id for one in graph.forward([first]).records] == [result]
    (feed,) = graph.overview(runs=[word]).feeds
    assert (feed.source, feed.target, feed.edges, feed.live) == (f"{word}-in", f"{word}-out", 2, True)
    facts = graph.describe_run(word)
    assert (facts.live, facts.watermark, facts.reach, facts.edges, facts.messages) == (True, 60, REACH, 2, 2)


def test_liveness(graph, word):
    begin, rest = small(word)
    first, second, result = (element.id for element in begin.elements)
    graph.apply_live([begin, rest])
    untold = f"lake:{word}-in/{word}/p.jsonl#99"
    foreign, elsewhere = f"lake:{word}-in/other/p.jsonl#1", f"lake:{word}-x/{word}/p.jsonl#1"
    found = graph.liveness([first, second, result, untold, foreign, elsewhere, "x:outside"])
    assert [one.state for one in found] == ["expired", "live", "expired", "unsure", "unknown", "unknown", "unknown"]
    (own,) = found[1].runs
    assert (own.run, own.query, own.time, own.watermark, own.reach) == (word, f"{word}-query", 10, 60, REACH)
    (count,) = [one for one in graph.count_liveness([first, second, untold]) if one.run == word]
    assert count.counts == {"expired": 1, "live": 1, "unsure": 1}
    assert count.examples["live"] == second
    assert [run.watermark for run in graph.live_runs() if run.run == word] == [60]
    # A run that reads versions of others may read any version of their dataset.
    graph.apply_live([message(word, [SourceVertex(60, foreign, 70)], step=1, watermark=60)])
    other = f"lake:{word}-in/third/p.jsonl#1"
    assert graph.liveness([other])[0].state == "unsure"
    # When it has ended, nothing is made from anything any more.
    last = [Expired(END, second), Expired(END, foreign)]
    graph.apply_live([message(word, last, step=2, watermark=END)])
    assert [one.state for one in graph.liveness([first, second, untold, other])] == ["expired"] * 4


def declared(word: str, reduced, **told):
    edges = [(f"lake:{word}-out/{word}", f"lake:{word}-in/{word}")]
    return reduced(word, edges, dic=f"{word}-query", verdict="unknown", marks=["declared", "stream"], **told)


def left_of(graph: LakeGraph, run: str) -> list:
    asked = (
        "OPTIONAL MATCH (p:LiveProgress {run: $run}) WITH count(p) AS places "
        "OPTIONAL MATCH ()-[l:LIVE_IN {run: $run}]->() WITH places, count(l) AS live "
        "OPTIONAL MATCH (b:Batch {run: $run}) WITH places, live, count(b) AS batches "
        "OPTIONAL MATCH ()-[e:WAS_DERIVED_FROM {run: $run}]->() RETURN places, live, batches, count(e)"
    )
    return graph.cypher(asked, {"run": run}).rows[0]


def test_the_finished_run_replaces_it(graph, word, reduced):
    messages = tell_stream(word, 0, random.Random(1), ends=False)
    loose = [SourceVertex(900, f"lake:{word}-in/{word}/p#8", 900), SinkVertex(900, f"lake:{word}-out/{word}/p#9", 900)]
    graph.apply_live(messages)
    graph.apply_live([message(word, loose, bucket=1, watermark=900)])
    other = f"lake:{word}-later/1#x"
    kept = messages[0].elements[0].id
    graph.merge(reduced(f"{word}-next", [(other, kept)]))
    graph.merge(reduced(f"{word}-next", [(other, kept)]))
    vertices = held(graph, word)[0]
    assert len(vertices) > 5
    assert graph.merge(declared(word, reduced)).replaced
    assert left_of(graph, word) == [0, 0, 1, 1]
    assert held(graph, word)[0] == {kept, f"lake:{word}-in/{word}", f"lake:{word}-out/{word}"}
    known = run_of(graph, word)
    assert not {"live", "watermark", "reach", "reads", "told_at", "unclean"} & known.keys()
    assert (known["revision"], known["edges"], known["verdict"]) == (2, 1, "unknown")
    assert [feed.edges for feed in graph.datasets() if feed.target == f"{word}-out"] == [1]
    assert not [run for run in graph.live_runs() if run.run == word]
    assert graph.liveness([kept])[0].state == "unknown"
    # What comes late is ignored, of buckets that are known and of others.
    late = [message(word, loose, bucket=bucket, step=99, watermark=950) for bucket in (0, 1, 7)]
    assert [graph.apply_live([one]).late for one in late] == [1, 1, 1]
    assert left_of(graph, word) == [0, 0, 1, 1]
    assert not graph.merge(declared(word, reduced)).changed


def test_messages_that_come_while_it_is_replaced(neo4j_service: Settings, graph, word, reduced):
    """Each message is in before the switch, and goes with the rest, or is late: nothing of it is left in between."""
    buckets = [tell_stream(word, number, random.Random(number), steps=15, ends=False) for number in range(3)]
    for bucket in buckets:
        graph.apply_live(bucket[:1])

    def follow(messages):
        with LakeGraph(neo4j_service) as own:
            return sum(own.apply_live([one]).late for one in messages)

    folder = declared(word, reduced)
    with ThreadPoolExecutor(3) as threads:
        following = [threads.submit(follow, bucket) for bucket in buckets]
        graph.merge(folder)
        assert sum(one.result() for one in following) > 0
    assert left_of(graph, word) == [0, 0, 1, 1]
    assert held(graph, word)[0] == {f"lake:{word}-in/{word}", f"lake:{word}-out/{word}"}


def test_what_cannot_be_is_refused_and_said(graph, word):
    begin, rest = small(word)
    first, second, result = (element.id for element in begin.elements)
    graph.apply_live([begin, rest])
    before = held(graph, word)
    new = f"lake:{word}-out/{word}/p.jsonl#2"
    for elements, reason in (
        ([SinkVertex(60, new, 60), Edge(60, new, first)], "has expired"),
        ([SinkVertex(60, new, 60), Edge(60, new, f"lake:{word}-in/{word}/p.jsonl#77")], "not told before"),
        ([Edge(60, new, second)], "not told before"),
        ([SourceVertex(60, second, 10)], "told twice"),
        ([SinkVertex(60, new, 60), Expired(60, new), Edge(60, new, second)], "after it has expired"),
        ([SinkVertex(60, "x:outside", 60)], "not a record of the lake"),
        ([SinkVertex(60, "lake:" + "x" * 5000, 60)], "longer than"),
        ([SinkVertex(60, new, 1 << 63)], "64 bits"),
    ):
        with pytest.raises(MessageError, match=reason):
            graph.apply_live([message(word, elements, step=3, watermark=60)])
    with pytest.raises(InputError, match="cannot be a run id"):
        graph.apply_live([message("a/b", [])])
    with pytest.raises(MessageError, match="several buckets"):
        graph.apply_live([begin, message(word, [], bucket=1)])
    assert held(graph, word) == before
    graph.doubt_live(word)
    assert graph.backward([result]).verdict == "partial"


def test_one_that_cannot_be_does_not_keep_others_back(graph, word):
    begin, rest = small(word)
    bad = message(word, [Edge(60, "lake:a/b#c", "lake:a/b#d")], step=1, watermark=60)
    more = message(word, [SourceVertex(61, f"lake:{word}-in/{word}/p.jsonl#5", 61)], step=2, watermark=61)
    came = [Followed("t", 0, number, one.to_message()) for number, one in enumerate((begin, rest, bad, more))]
    came.insert(1, Followed("t", 0, 9, came[0].message.__class__({"kind": "live", "run": word}, b"{")))
    progress = Progress()
    refused = list(take(graph, came, progress))
    assert [(one.followed.offset, one.reason[:9]) for one in refused] == [(9, "A live me"), (2, "An edge t")]
    assert (progress.messages, progress.rejected) == (3, 2)
    assert run_of(graph, word)["watermark"] == 61


def test_a_run_that_was_given_up_is_pruned_and_one_that_goes_on_is_not(neo4j_service: Settings, graph, word):
    graph.apply_live(small(word))
    assert not graph.prune(dataset=f"{word}-out").runs
    assert not graph.prune(before=datetime.now(UTC), dataset=f"{word}-out").runs
    connection = Connection(neo4j_service)
    long_ago = datetime.now(UTC) - timedelta(days=30)
    connection.write(lambda tx: tx.run("MATCH (r:Run {id: $r}) SET r.told_at = $t", r=word, t=long_ago).consume())
    connection.close()
    assert not graph.prune(dataset=f"{word}-out").runs
    pruned = graph.prune(before=datetime.now(UTC) - timedelta(days=8), dataset=f"{word}-out")
    assert [(run.run, run.edges) for run in pruned.runs] == [(word, 2)]
    assert (pruned.edges, pruned.records) == (2, 3)
    assert left_of(graph, word) == [0, 0, 0, 0]
    with pytest.raises(UnknownRecordError, match="pruned"):
        graph.backward([f"lake:{word}-out/{word}/p.jsonl#1"])
    assert graph.apply_live(small(word)).late == 2


def test_records_that_were_pruned_say_so_again(graph, word, reduced):
    source = f"lake:{word}-in/{word}/p.jsonl#1"
    graph.merge(reduced(f"{word}-old", [(f"lake:{word}-gone/1#g", source)]))
    graph.prune(dataset=f"{word}-gone")
    graph.apply_live(small(word))
    assert graph.forward([source]).verdict == "partial"
