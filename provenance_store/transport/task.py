"""Kafka for a process that runs one task: one producer for its messages and its receipt, and no admin client.

Each connection costs tens of milliseconds, and Hadoop starts many short processes. The driver has made the topics. A
receipt goes through the producer that sent the messages while that is sound; after a failure it gets a fresh one, as it
would have without this file.
"""

from typing import TYPE_CHECKING, Any

from provenance_store.errors import TransportError
from provenance_store.transport.kafka import (
    RECEIPTS_TOPIC,
    KafkaReceipts,
    KafkaSink,
    KafkaSource,
    KafkaTransport,
    open_producer,
    receipt_message,
    telling_unreachable,
)
from provenance_store.transport.partitioning import PARTITIONINGS
from provenance_store.transport.port import Receipt

if TYPE_CHECKING:
    from provenance_store.settings import Settings


class TaskTransport:
    """The writers' ends of one Kafka, which share a producer until the task's last receipt is left."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._producer: Any = None
        self._sinks: list[_TaskSink] = []

    def sink(self, topic: str) -> "_TaskSink":
        """A sink to a topic that the driver has made."""
        sink = self._open(topic)
        self._sinks.append(sink)
        return sink

    def source(self, topic: str) -> KafkaSource:
        """A source of the topic, from its beginning."""
        return KafkaTransport(self._settings).source(topic)

    def receipts(self) -> "_TaskReceipts":
        """The receipts of every run."""
        return _TaskReceipts(self._settings, self)

    def close(self) -> None:
        """Give the producer up; every sink has waited for its own messages."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1.0)

    def post(self, receipt: Receipt) -> bool:
        """Leave a receipt through the shared producer; False where that may not be trusted any more."""
        if self._producer is None or not all(sink.is_sound for sink in self._sinks):
            return False
        sink = self._open(RECEIPTS_TOPIC)
        sink.send(receipt_message(receipt))
        sink.close().check()
        return True

    def _open(self, topic: str) -> "_TaskSink":
        kafka = self._settings.kafka
        with telling_unreachable(self._settings):
            if self._producer is None:
                self._producer = open_producer(self._settings)
            return _TaskSink(self._producer, topic, PARTITIONINGS[kafka.partitioning], kafka.timeout_seconds)


class _TaskSink(KafkaSink):
    """A sink that leaves its producer open for the receipt; the process ends soon, and the producer with it."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing has failed so far."""
        return not self._failed

    def _release(self, seconds: float) -> None:
        del seconds


class _TaskReceipts(KafkaReceipts):
    def __init__(self, settings: "Settings", shared: TaskTransport) -> None:
        super().__init__(settings)
        self._shared = shared

    def post(self, receipt: Receipt) -> None:
        """Send the receipt and wait until it is durable."""
        try:
            if self._shared.post(receipt):
                return
        except TransportError:
            # Sent twice it counts once: receipts are kept by their writer.
            pass
        super().post(receipt)
