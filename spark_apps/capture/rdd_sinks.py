"""Sinks of Python tasks: one Kafka producer a worker process, because Spark gives one worker many tasks.

Connecting costs a good part of a second, a small task less. A sink that is closed waits for its own confirmations and
leaves the producer open. A producer that failed is given up. Under the policy `degrade` none is tried for a while then:
each task would otherwise wait for the dead broker anew. Under `fail` a task that is tried again tries the broker again.

Workers start often, so what takes long to import, settings and Kafka's client, is imported when a message is sent.
"""

import contextlib
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provenance_store.errors import TransportError
from provenance_store.model.message import Message
from provenance_store.transport.port import Delivery, Sink
from provenance_store.transport.recording import RecordingTransport
from spark_apps.capture.writer import Policy

if TYPE_CHECKING:
    from provenance_store.settings import Settings

_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SinkAddress:
    """Where a run's tasks send to; light to carry and to open."""

    topic: str
    policy: Policy
    recordings: Path | None
    settings: bytes

    @classmethod
    def of(cls, settings: "Settings", topic: str, policy: Policy) -> "SinkAddress":
        """The address that the settings name."""
        recordings = None if settings.recordings is None else settings.recordings.absolute()
        return cls(topic, policy, recordings, pickle.dumps(settings))

    def open(self) -> Sink:
        """A sink for one writer; TransportError where the broker does not answer, or under `degrade` did not now."""
        if self.recordings is not None:
            return RecordingTransport(self.recordings).sink(self.topic)
        connection = _connections.setdefault(self, _Connection())
        if self.policy == "degrade" and connection.failure is not None and time.monotonic() < connection.wait_until:
            raise TransportError(f"Not tried again yet: {connection.failure}")
        try:
            return _SharedSink(connection, connection.open_sink(self))
        except Exception as error:  # the producer's own errors too, which only its adapter knows
            told = f"Kafka topic {self.topic}: {error!r}"
            failure = error if isinstance(error, TransportError) else TransportError(told)
            connection.give_up(failure)
            raise failure from error


class _Connection:
    """What this process knows of one broker and topic: an open producer, or how long to leave it alone."""

    def __init__(self) -> None:
        self.failure: TransportError | None = None
        self.wait_until = 0.0
        self._producer: Any = None

    def open_sink(self, address: SinkAddress) -> Sink:
        from provenance_store.transport.kafka import KafkaSink, KafkaTransport  # noqa: PLC0415 - see above
        from provenance_store.transport.partitioning import PARTITIONINGS  # noqa: PLC0415

        settings: Settings = pickle.loads(address.settings)  # noqa: S301 - Spark itself brought it, in a pickle
        if self._producer is None:
            self._producer = KafkaTransport(settings).sink(address.topic)._producer
        kafka = settings.kafka
        lasting = _Lasting(self._producer)
        return KafkaSink(lasting, address.topic, PARTITIONINGS[kafka.partitioning], kafka.timeout_seconds)

    def give_up(self, error: TransportError) -> None:
        producer, self._producer = self._producer, None
        self.failure, self.wait_until = error, time.monotonic() + _WAIT_SECONDS
        if producer is not None:
            with contextlib.suppress(Exception):  # it failed already, and nothing more is asked of it
                producer.close(timeout=0)


_connections: dict[SinkAddress, _Connection] = {}


class _Lasting:
    """A producer that its sinks cannot close."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def close(self, timeout: float | None = None) -> None:
        """Stay open for the next task of this worker."""


class _SharedSink:
    """A sink through the process's producer, which is given up at the first failure."""

    def __init__(self, connection: _Connection, sink: Sink) -> None:
        self._connection = connection
        self._sink = sink

    def send(self, message: Message) -> None:
        """Hand one message over."""
        try:
            self._sink.send(message)
        except TransportError as error:
            self._connection.give_up(error)
            raise

    def close(self, timeout: float | None = None) -> Delivery:
        """Wait for every confirmation of this sink's own messages."""
        delivery = self._sink.close(timeout)
        if delivery.failed:
            self._connection.give_up(TransportError(delivery.reason))
        return delivery
