"""What Kafka's retention took away before it was read is named as missing."""

from collections import Counter
from pathlib import Path

from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport, client_options
from spark_apps.reducer.app import run
from tests.integration.reducer.test_reducer import assert_same, in_library, manifest, send, stream


def test_messages_that_were_removed_before_they_were_read_are_named(
    kafka_service: Settings, spark_session: SparkSession, tmp_path: Path
) -> None:
    topic = "reducer.retention"
    send(kafka_service, topic, stream("r", lake=True, seed=61))
    send(kafka_service, topic, [manifest("r", {"a0": 3, "a1": 3, "a2": 3})])
    with KafkaTransport(kafka_service).source(topic) as source:
        received = list(source)
    told = Counter(one.partition for one in received)
    first = {partition: messages // 2 for partition, messages in told.items()}  # the first offset that is left
    admin = KafkaAdminClient(**client_options(kafka_service))
    admin.delete_records({TopicPartition(topic, partition): offset for partition, offset in first.items()})
    admin.close()
    left = [one.message for one in received if one.offset >= first[one.partition]]
    kept = {(message.headers["attempt"], message.headers["seq"]) for message in left}
    every = {(f"a{attempt}", str(seq)) for attempt in range(3) for seq in range(3)}
    gone = {(attempt, int(seq)) for attempt, seq in every - kept}
    assert gone
    ((folder, account),) = run(spark_session, kafka_service, topic=topic, out=tmp_path).items()
    assert account.verdict == "partial"
    assert {(attempt, seq) for attempt, missing in account.missing.items() for seq in missing} == gone
    assert_same(folder, account, in_library(left)["r"])
