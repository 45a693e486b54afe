"""Kafka behind the port: an idempotent producer whose every send is confirmed, and a consumer that reads to the end."""

import contextlib
import json
import ssl
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from provenance_store.errors import InputError, MessageError, TransportError
from provenance_store.model.message import Message
from provenance_store.transport.partitioning import PARTITIONINGS, Partitioning
from provenance_store.transport.port import Closing, Delivery, Receipt, Received

if TYPE_CHECKING:
    # A task's process is told its settings by the driver, and starts without the library that reads them.
    from provenance_store.settings import Settings

RECEIPTS_TOPIC = "headwater.receipts"
# The largest value a producer of ours sends; the emitter splits what would be larger.
MAX_REQUEST_BYTES = 2 << 20
# kafka-python bounds no memory of its own: beyond this much unconfirmed, a sender waits for the broker.
_MAX_UNCONFIRMED_BYTES = 64 << 20
# So many messages between two that are asked for are read rather than jumped over.
_PASSED_OVER = 1_000
# Whether and after how long a topic's segments are removed, how long one is written to, and how long removing takes.
_LIFETIME = ("cleanup.policy", "retention.ms", "segment.ms", "file.delete.delay.ms")


class _Future(Protocol):
    is_done: bool

    def get(self, timeout: float | None = None) -> Any: ...


class KafkaSink(Closing):
    """Sends to one topic with `acks=all`; no failure goes unseen."""

    def __init__(self, producer: KafkaProducer, topic: str, partitioning: Partitioning, timeout: float) -> None:
        self._producer = producer
        self._topic = topic
        self._partitioning = partitioning
        self._timeout = timeout
        self._partitions = len(producer.partitions_for(topic))
        self._unconfirmed: deque[tuple[_Future, int]] = deque()
        self._unconfirmed_bytes = 0
        self._delivered = 0
        self._failed = 0
        self._reason = ""
        self._closed = False

    def send(self, message: Message) -> None:
        """Hand a message over; waits only while too much is unconfirmed."""
        if self._closed:
            raise TransportError(f"The sink to topic {self._topic} is closed.")
        while self._unconfirmed and self._unconfirmed[0][0].is_done:
            self._confirm_oldest(None)
        while self._unconfirmed_bytes > _MAX_UNCONFIRMED_BYTES:
            self._confirm_oldest(self._timeout)
        if self._failed:
            raise TransportError(f"Kafka topic {self._topic}: {self._reason}")
        try:
            future = self._producer.send(
                self._topic,
                value=message.value,
                headers=[(name, value.encode()) for name, value in message.headers.items()],
                partition=self._partitioning(message.headers, self._partitions),
            )
        except KafkaError as error:
            self._failed += 1
            self._reason = _describe(error)
            raise TransportError(f"Kafka topic {self._topic}: {self._reason}") from error
        self._unconfirmed.append((future, len(message.value)))
        self._unconfirmed_bytes += len(message.value)

    def close(self, timeout: float | None = None) -> Delivery:
        """Wait for every confirmation, at most `timeout` seconds in all."""
        if not self._closed:
            self._closed = True
            deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
            # A flush that times out is not the last word: every message is asked for below.
            with contextlib.suppress(KafkaError):
                self._producer.flush(timeout=max(deadline - time.monotonic(), 0.001))
            while self._unconfirmed:
                self._confirm_oldest(max(deadline - time.monotonic(), 0.001))
            self._release(max(deadline - time.monotonic(), 1.0))
        return Delivery(self._delivered, self._failed, self._reason)

    def _release(self, seconds: float) -> None:
        self._producer.close(timeout=seconds)

    def _confirm_oldest(self, timeout: float | None) -> None:
        future, size = self._unconfirmed.popleft()
        self._unconfirmed_bytes -= size
        try:
            future.get(timeout=timeout)
            self._delivered += 1
        except KafkaError as error:
            self._failed += 1
            self._reason = self._reason or _describe(error)


class KafkaSource(Closing):
    """Reads a topic from the beginning to where it ended when iteration began."""

    def __init__(self, settings: "Settings", topic: str) -> None:
        self._topic = topic
        self._timeout = settings.kafka.timeout_seconds
        with telling_unreachable(settings):
            self._consumer = KafkaConsumer(
                **client_options(settings),
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_bytes=64 << 20,
                max_partition_fetch_bytes=16 << 20,
                max_poll_records=5000,
            )
            partitions = self._consumer.partitions_for_topic(topic)
        if not partitions:
            self._consumer.close()
            raise InputError(f"There is no topic {topic!r} on Kafka at {settings.bootstrap_servers}.")
        self._partitions = [TopicPartition(topic, number) for number in sorted(partitions)]

    def __iter__(self) -> Iterator[Received]:
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(*self._partitions)
        ends = self._consumer.end_offsets(self._partitions)
        quiet_since = time.monotonic()
        while pending := [p for p in self._partitions if self._consumer.position(p) < ends[p]]:
            batches = self._consumer.poll(timeout_ms=500)
            if batches:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > self._timeout:
                behind = ", ".join(str(p.partition) for p in pending)
                raise TransportError(
                    f"Kafka sent nothing of topic {self._topic} for {self._timeout:.0f} s, and partitions {behind} "
                    "are not read to their end. Check the broker with `headwater status` and its log."
                )
            for place, records in batches.items():
                for record in records:
                    if record.offset < ends[place]:
                        headers = {name: header_text(value) for name, value in record.headers}
                        # A value of None is a tombstone of a compacted topic: it is no message, and is told as such.
                        yield Received(Message(headers, record.value or b""), place.partition, record.offset)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


class KafkaReceipts:
    """Receipts in a topic of their own, which every run shares; a run's receipts share one partition."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings

    def post(self, receipt: Receipt) -> None:
        """Send the receipt and wait until it is durable."""
        sink = KafkaTransport(self._settings).sink(RECEIPTS_TOPIC)
        with sink:
            sink.send(receipt_message(receipt))

    def gather(self, run: str) -> list[Receipt]:
        """Every receipt of the run, the last one a writer left."""
        KafkaTransport(self._settings).ensure_topics(RECEIPTS_TOPIC)
        receipts: dict[str, Receipt] = {}
        with KafkaSource(self._settings, RECEIPTS_TOPIC) as source:
            for received in source:
                if received.message.headers.get("run") == run:
                    receipt = _read_receipt(received.message)
                    receipts[receipt.attempt] = receipt
        return list(receipts.values())


class KafkaTransport:
    """All ends of one Kafka."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings

    def sink(self, topic: str) -> KafkaSink:
        """A sink with its own producer; the topic is made if it is not there."""
        kafka = self._settings.kafka
        self.ensure_topics(topic)
        with telling_unreachable(self._settings):
            producer = open_producer(self._settings)
            return KafkaSink(producer, topic, PARTITIONINGS[kafka.partitioning], kafka.timeout_seconds)

    def source(self, topic: str) -> KafkaSource:
        """A source of the topic, from its beginning."""
        return KafkaSource(self._settings, topic)

    def read_at(self, topic: str, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        """Messages by partition and offset: those that the topic still holds. None of a topic that is not there."""
        with telling_unreachable(self._settings):
            consumer = KafkaConsumer(
                **client_options(self._settings),
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=MAX_REQUEST_BYTES,
            )
            try:
                there = consumer.partitions_for_topic(topic) or set()
                found: dict[tuple[int, int], bytes] = {}
                for number in sorted({partition for partition, _ in places} & there):
                    offsets = sorted({offset for partition, offset in places if partition == number})
                    part = _read_offsets(consumer, TopicPartition(topic, number), offsets, self._settings)
                    found |= {(number, offset): value for offset, value in part.items()}
                return found
            finally:
                consumer.close()

    def lags(self, prefix: str, group: str) -> dict[str, int]:
        """Of each topic whose name begins so, how many messages a consumer group has still to read; no dead letters."""
        with telling_unreachable(self._settings):
            consumer = KafkaConsumer(**client_options(self._settings), group_id=group, enable_auto_commit=False)
            try:
                names = sorted(name for name in consumer.topics() if name.startswith(prefix))
                found = {}
                for name in (one for one in names if not one.endswith(".rejected")):
                    places = [TopicPartition(name, number) for number in consumer.partitions_for_topic(name) or ()]
                    begins, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
                    done = {place: consumer.committed(place) for place in places}
                    found[name] = sum(ends[place] - max(begins[place], done[place] or 0) for place in places)
                return found
            finally:
                consumer.close(autocommit=False)

    def receipts(self) -> KafkaReceipts:
        """The receipts of every run."""
        return KafkaReceipts(self._settings)

    def close(self) -> None:
        """Nothing is shared, so nothing is left open."""

    def delete_topic(self, topic: str) -> None:
        """Remove a topic and all its messages."""
        with telling_unreachable(self._settings):
            admin = KafkaAdminClient(**client_options(self._settings))
            try:
                admin.delete_topics([topic])
            finally:
                admin.close()

    def lifetimes(self, *topics: str) -> dict[str, timedelta | None]:
        """How long a message can still be in each topic that is there, at most; None where it may stay for ever."""
        with telling_unreachable(self._settings):
            admin = KafkaAdminClient(**client_options(self._settings))
            try:
                there = sorted(set(topics).intersection(admin.list_topics()))
                if not there:
                    return {}
                asked = [ConfigResource(ConfigResourceType.TOPIC, name, dict.fromkeys(_LIFETIME)) for name in there]
                told = admin.describe_configs(asked, config_filter=ConfigFilterType.ALL)
            finally:
                admin.close()
        found = {name: configs for by_name in told.values() for name, configs in by_name.items()}
        return {name: _lifetime({key: str(found[name][key]["value"]) for key in _LIFETIME}) for name in there}

    def ensure_topics(self, *topics: str) -> None:
        """Make the topics that are not there; two that try at once both succeed."""
        kafka = self._settings.kafka
        with telling_unreachable(self._settings):
            admin = KafkaAdminClient(**client_options(self._settings))
            try:
                for topic in set(topics).difference(admin.list_topics()):
                    new = NewTopic(
                        name=topic,
                        num_partitions=1 if topic == RECEIPTS_TOPIC else kafka.partitions,
                        replication_factor=kafka.replication,
                        topic_configs={"retention.ms": str(kafka.retention_hours * 3_600_000)},
                    )
                    with contextlib.suppress(TopicAlreadyExistsError):
                        admin.create_topics([new], wait_for_metadata=True)
            finally:
                admin.close()


def open_producer(settings: "Settings") -> KafkaProducer:
    """A producer with the promises that sinks rely on."""
    kafka = settings.kafka
    return KafkaProducer(
        **client_options(settings),
        enable_idempotence=True,
        acks="all",
        compression_type={"none": None, "auto": "lz4"}.get(kafka.compression, kafka.compression),
        batch_size=1 << 20,
        linger_ms=20,
        max_request_size=MAX_REQUEST_BYTES,
        max_block_ms=round(kafka.timeout_seconds * 1000),
        delivery_timeout_ms=round(kafka.timeout_seconds * 1000),
        # A request is given up in time to be tried again before the message is.
        request_timeout_ms=min(30_000, round(kafka.timeout_seconds * 500)),
    )


def client_options(settings: "Settings") -> dict[str, Any]:
    """What every Kafka client needs to reach the broker; TLS checks the broker's name always."""
    kafka = settings.kafka
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers.split(","),
        "security_protocol": kafka.security_protocol,
        "bootstrap_timeout_ms": min(15_000, round(kafka.timeout_seconds * 1000)),
    }
    if kafka.security_protocol.startswith("SASL"):
        if kafka.sasl_username is None or kafka.sasl_password is None:
            raise InputError("Kafka with SASL needs HEADWATER_KAFKA__SASL_USERNAME and HEADWATER_KAFKA__SASL_PASSWORD.")
        options |= {
            "sasl_mechanism": kafka.sasl_mechanism,
            "sasl_plain_username": kafka.sasl_username,
            "sasl_plain_password": kafka.sasl_password.get_secret_value(),
        }
    if kafka.security_protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=kafka.ssl_cafile)
        if kafka.ssl_certfile is not None:
            context.load_cert_chain(kafka.ssl_certfile, kafka.ssl_keyfile)
        options["ssl_context"] = context
    return options


@contextlib.contextmanager
def telling_unreachable(settings: "Settings") -> Iterator[None]:
    """Turns the client's errors into one that says which broker and what to do."""
    try:
        yield
    except KafkaError as error:
        raise TransportError(
            f"Kafka at {settings.bootstrap_servers} does not answer ({_describe(error)}). "
            "Start it with `headwater up kafka`, or set HEADWATER_KAFKA__BOOTSTRAP_SERVERS."
        ) from error


def _read_offsets(
    consumer: KafkaConsumer, place: TopicPartition, offsets: Sequence[int], settings: "Settings"
) -> dict[int, bytes]:
    """Those of a partition's messages, by offsets in ascending order. What lies between them is passed over."""
    consumer.assign([place])
    begin, end = consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
    left = deque(offset for offset in offsets if begin <= offset < end)
    found: dict[int, bytes] = {}
    if left:
        consumer.seek(place, left[0])
    heard = time.monotonic()
    while left and consumer.position(place) < end:
        if left[0] - consumer.position(place) > _PASSED_OVER:
            consumer.seek(place, left[0])
        records = consumer.poll(timeout_ms=500).get(place, [])
        if records:
            heard = time.monotonic()
        elif time.monotonic() - heard > settings.kafka.timeout_seconds:
            raise TransportError(
                f"Kafka sent nothing of topic {place.topic} for {settings.kafka.timeout_seconds:.0f} s, and "
                f"{len(left):,} messages are still to come. Check the broker with `headwater status` and its log."
            )
        for record in records:
            while left and left[0] < record.offset:
                left.popleft()  # compacted away
            if left and left[0] == record.offset:
                found[left.popleft()] = record.value or b""
    return found


def _lifetime(configs: Mapping[str, str]) -> timedelta | None:
    """A broker removes whole segments: a message goes when the youngest one beside it is old enough."""
    kept, together, margin = (int(configs[name]) for name in _LIFETIME[1:])
    if "delete" not in configs[_LIFETIME[0]] or kept < 0:
        return None
    try:
        return timedelta(milliseconds=kept + together + margin)
    except OverflowError:
        return None


def _describe(error: KafkaError) -> str:
    # kafka-python's own texts begin with the error's name, but not all of them.
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}" if text else name


def header_text(value: bytes | None) -> str:
    """A header as text: someone else's may hold any bytes; ours are ASCII."""
    return (value or b"").decode("utf-8", "replace")


def receipt_message(receipt: Receipt) -> Message:
    """A receipt as it travels."""
    value = {"attempt": receipt.attempt, "messages": receipt.messages, "task_attempt": receipt.task_attempt}
    return Message({"run": receipt.run, "kind": "receipt"}, json.dumps(value).encode())


def _read_receipt(message: Message) -> Receipt:
    try:
        fields = json.loads(message.value)
        return Receipt(message.headers["run"], fields["attempt"], fields["messages"], fields["task_attempt"])
    except (ValueError, KeyError, TypeError) as error:
        raise MessageError(f"A receipt of run {message.headers.get('run')!r} cannot be read: {error!r}.") from None
