"""Poison through Kafka and Spark: nothing dies of it, it is kept with the reason, and everything else is exact."""

import os
from collections import Counter
from pathlib import Path

from kafka import KafkaProducer
from pyspark.sql import SparkSession

from provenance_store.model.message import Headers, Message
from provenance_store.services.kafka import MAX_MESSAGE_BYTES
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport, client_options
from spark_apps.reducer.app import run
from tests.integration.reducer.test_reducer import assert_same, in_library, manifest, send, stream
from tests.property.poison import ODD, UNREADABLE, document

MEGABYTES = b"x" * (5 << 20)
# Larger than any message of ours, and small for the broker, which looks at what compression leaves.
GIGANTIC = document(
    b'"entity":{"lake:x":{"a":"%s"}},"wasDerivedFrom":'
    b'{"_:1":{"prov:generatedEntity":"lake:big","prov:usedEntity":"lake:b"}}' % MEGABYTES
)
GIGANTIC_UNREADABLE = b'{"' + MEGABYTES
# As large as the broker takes it, so that there is no room left for a reason.
FULL_UNREADABLE = os.urandom(MAX_MESSAGE_BYTES - 110)


def send_large(settings: Settings, topic: str, messages: list[Message], compression: str | None) -> None:
    """As a producer that is not ours does."""
    producer = KafkaProducer(**client_options(settings), max_request_size=16 << 20, compression_type=compression)
    for message in messages:
        headers = [(name, value.encode()) for name, value in message.headers.items()]
        producer.send(topic, value=message.value, headers=headers).get(timeout=60)
    producer.close()


def test_poison_is_kept_with_its_reason_and_harms_nothing_beside_it(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    topic = "reducer.poison"
    poison = [value for value, _ in UNREADABLE.values()]
    odd = [value for value, _ in ODD.values()]
    small = [Message.of(Headers("r", "dic", "odd", seq), value) for seq, value in enumerate([*odd, *poison])]
    zipped = [
        Message.of(Headers("r", "dic", "zipped", seq), value)
        for seq, value in enumerate([GIGANTIC, GIGANTIC_UNREADABLE])
    ]
    full = [Message({"run": "r"}, FULL_UNREADABLE)]
    good = stream("r", lake=True, seed=51)
    counted = manifest("r", {"a0": 3, "a1": 3, "a2": 3, "odd": len(odd), "zipped": 1})
    send(kafka_service, topic, [*small, *good, counted])
    send_large(kafka_service, topic, zipped, "gzip")
    send_large(kafka_service, topic, full, None)
    expected = in_library([*small, *good, counted, *zipped, *full])["r"]
    assert (expected.account.verdict, expected.account.rejected) == ("complete", len(poison) + 2)
    told = {pair for _, pairs in ODD.values() for pair in pairs} | {("lake:big", "lake:b")}
    assert told <= set(expected.graph.iter_rows())
    ((folder, account),) = run(spark_session, kafka_service, topic=topic, out=tmp_path).items()
    assert_same(folder, account, expected)
    with KafkaTransport(kafka_service).source(f"{topic}.rejected") as source:
        letters = [one.message for one in source]
    whole = [letter for letter in letters if "left-out" not in letter.headers]
    assert Counter(letter.value for letter in whole) == Counter(poison)
    # What has no room in a letter is told of, and stands where it stood.
    assert {letter.headers["left-out"] for letter in letters if letter not in whole} == {
        f"{len(value)} bytes" for value in (GIGANTIC_UNREADABLE, FULL_UNREADABLE)
    }
    assert len(letters) == len(poison) + 2
    for letter in letters:
        assert letter.headers["reason"]
        assert letter.headers["rejected-from"].startswith(f"{topic}/")
