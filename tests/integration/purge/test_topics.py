"""How long Kafka may still tell of purged records."""

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from provenance_store.purge.plan import Topic
from provenance_store.purge.planning import find_topics
from provenance_store.settings import KafkaSettings, Settings
from provenance_store.transport.kafka import KafkaTransport, client_options

DAY, NOW = 86_400_000, datetime(2026, 3, 4, tzinfo=UTC)


def make_topic(settings: Settings, name: str, **configs: str) -> None:
    admin = KafkaAdminClient(**client_options(settings))
    told = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1, topic_configs=told)])
    admin.close()


def test_a_message_stays_as_long_as_its_segment(kafka_service: Settings) -> None:
    dic = f"d{uuid.uuid4().hex[:8]}"
    bounds = {"segment_ms": str(2 * DAY), "file_delete_delay_ms": "60000"}
    make_topic(kafka_service, f"headwater.{dic}", retention_ms=str(3 * DAY), **bounds)
    make_topic(kafka_service, f"headwater.{dic}.rejected", retention_ms="-1")
    make_topic(kafka_service, f"headwater.{dic}-compacted", cleanup_policy="compact")
    lifetimes = KafkaTransport(kafka_service).lifetimes(
        f"headwater.{dic}", f"headwater.{dic}.rejected", f"headwater.{dic}-compacted", "headwater.nowhere"
    )
    assert lifetimes == {
        f"headwater.{dic}": timedelta(days=5, minutes=1),
        f"headwater.{dic}.rejected": None,
        f"headwater.{dic}-compacted": None,
    }
    assert find_topics(kafka_service, NOW, [dic, "nowhere"]) == [
        Topic(f"headwater.{dic}", "2026-03-09T00:01:00+00:00"),
        Topic(f"headwater.{dic}.rejected", None),
    ]


def test_nobody_knows_where_no_broker_answers(tmp_path: Path) -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9", timeout_seconds=1)
    settings = Settings(home=tmp_path, lake=tmp_path / "lake", kafka=kafka)
    assert find_topics(settings, NOW, ["count"]) == [Topic("headwater.count", None)]
