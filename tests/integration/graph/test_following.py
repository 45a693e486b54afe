"""From Kafka's topics into the lake graph: shared partitions, a death before the commit, what cannot be taken in."""

import itertools
import json
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from provenance_store.cli.streams import app
from provenance_store.graph.following import follow_live
from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import Settings
from provenance_store.streams.live_messages import LiveMessage, topic_of
from provenance_store.transport.following import KafkaFollower
from provenance_store.transport.kafka import KafkaTransport, open_producer
from tests.live_stream import Truth, tell_stream


@pytest.fixture
def settings(kafka_service: Settings, neo4j_service: Settings) -> Settings:
    return neo4j_service.model_copy(
        update={"kafka": kafka_service.kafka.model_copy(update={"bootstrap_servers": kafka_service.bootstrap_servers})}
    )


def send(settings: Settings, topic: str, messages: list[LiveMessage | bytes]) -> None:
    """As a run sends them: by key, so that a bucket's are in one partition."""
    KafkaTransport(settings).ensure_topics(topic)
    producer = open_producer(settings)
    for one in messages:
        if isinstance(one, bytes):
            producer.send(topic, value=one, headers=[("kind", b"live"), ("run", b"nobody")]).get(30)
        else:
            wire = one.to_message()
            headers = [(name, value.encode()) for name, value in wire.headers.items()]
            producer.send(topic, key=one.key.encode(), value=wire.value, headers=headers).get(30)
    producer.close()


def test_from_kafka_once_whatever_dies(settings: Settings, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_of(f"{word}-query")
    buckets = [tell_stream(word, number, random.Random(number)) for number in range(4)]
    truth = Truth()
    for one in itertools.chain(*buckets):
        truth.take(one)
    half = len(buckets[0]) // 2
    send(settings, topic, [*buckets[0][:half], *buckets[1][:half], b"{no live message", *buckets[2], *buckets[3]])
    asked = {"group": word, "until_quiet": 3.0}
    with LakeGraph(settings) as graph:
        # It dies when all is written, and before it could say so.
        commit = KafkaFollower.commit
        monkeypatch.setattr(KafkaFollower, "commit", lambda *_: (_ for _ in ()).throw(ConnectionResetError()))
        with pytest.raises(ConnectionResetError):
            follow_live(settings, graph, [topic], **asked)
        monkeypatch.setattr(KafkaFollower, "commit", commit)
        send(settings, topic, [*buckets[0][half:], *buckets[1][half:]])

        def follow() -> object:
            with LakeGraph(settings) as own:
                return follow_live(settings, own, [topic], **asked)

        # Two members share what is left, and what was not said to be done comes again.
        with ThreadPoolExecutor(2) as threads:
            done = [one.result() for one in [threads.submit(follow) for _ in range(2)]]
        assert sum(one.repeated for one in done) > 0
        assert sum(one.rejected for one in done) == 1
        assert [one.lag for one in done] == [0, 0]
        edges = graph.cypher("MATCH (o)-[:WAS_DERIVED_FROM {run: $run}]->(i) RETURN o.id, i.id", {"run": word}).rows
        assert Counter(map(tuple, edges)) == truth.edges
        assert not graph.cypher("MATCH ()-[l:LIVE_IN {run: $run}]->() RETURN l", {"run": word}).rows
    # What could not be read is kept once, though it was read twice.
    with KafkaTransport(settings).source(f"{topic}.rejected") as source:
        (letter,) = [received.message for received in source]
    assert letter.value == b"{no live message"
    assert letter.headers["rejected-from"].startswith(f"{topic}/")
    assert "cannot be read" in letter.headers["reason"]


def test_on_the_command_line(settings: Settings, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from provenance_store.cli import live

    messages = tell_stream(word, 0, random.Random(3), ends=False)
    truth = Truth()
    for one in messages:
        truth.take(one)
    send(settings, topic_of(f"{word}-query"), messages)
    monkeypatch.setattr(live, "load_settings", lambda: settings)
    monkeypatch.setattr("provenance_store.services.application.Stop", lambda: threading.Event().is_set)
    told = CliRunner().invoke(
        app, ["streams", "follow-live", f"headwater.live.{word}*", "--until-quiet", "3", "--group", word, "--json"]
    )
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["messages"] == len(messages)
    expired = next(iter({source for _, source in truth.edges} - truth.live))
    asked = [next(iter(truth.live)), expired, f"lake:{word}-in/{word}/none#1", f"lake:{word}-else/1#1"]
    told = CliRunner().invoke(app, ["streams", "live", *asked, "--json"])
    assert [one["state"] for one in json.loads(told.stdout)] == ["live", "expired", "unsure", "unknown"]
    table = CliRunner().invoke(app, ["streams", "live", *asked]).stdout
    assert "not surely expired" in table
    assert "unknown to running queries" in table
