"""What every transport promises, run against each: a real Kafka, the same as tasks use it, and recordings."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from provenance_store.errors import InputError, TransportError
from provenance_store.model.message import Headers, Message
from provenance_store.settings import KafkaSettings, Settings
from provenance_store.transport.emitter import Emitter
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.partitioning import PARTITIONINGS
from provenance_store.transport.port import Receipt, Transport
from provenance_store.transport.recording import RecordingTransport
from provenance_store.transport.wiring import make_topics, open_task_transport
from spark_apps.capture.hadoop_job import dump_settings


@pytest.fixture(params=["kafka", "task", "recording"])
def transport(request: pytest.FixtureRequest, tmp_path: Path, topic: str) -> Transport:
    if request.param == "recording":
        return RecordingTransport(tmp_path)
    settings = request.getfixturevalue("kafka_service")
    if request.param == "kafka":
        return KafkaTransport(settings)
    make_topics(settings, topic, required=True)  # as the driver does before it starts tasks
    return open_task_transport(dump_settings(settings))


@pytest.fixture
def topic() -> str:
    return f"headwater.test-{uuid.uuid4().hex[:8]}"


def message(seq: int, value: bytes = b'{"used":{}}', attempt: str = "a", function: str = "map") -> Message:
    return Message.of(Headers(run="r", dic="d", attempt=attempt, seq=seq, task=attempt, function=function), value)


def read(transport: Transport, topic: str) -> list[Message]:
    with transport.source(topic) as source:
        return [received.message for received in source]


def test_what_is_sent_is_read_with_headers_and_value(transport: Transport, topic: str) -> None:
    sent = [message(seq, b'{"used":{"_:%d":{}}}' % seq) for seq in range(500)]
    with transport.sink(topic) as sink:
        for one in sent:
            sink.send(one)
    got = read(transport, topic)
    assert sorted(got, key=lambda m: int(m.headers["seq"])) == sent
    assert read(transport, topic) == got, "reading takes nothing away"


def test_close_tells_how_many_were_delivered_and_tells_it_again(transport: Transport, topic: str) -> None:
    sink = transport.sink(topic)
    for seq in range(7):
        sink.send(message(seq))
    delivery = sink.close()
    assert (delivery.delivered, delivery.failed) == (7, 0)
    assert sink.close() == delivery
    with pytest.raises(TransportError, match="closed"):
        sink.send(message(7))


@pytest.mark.parametrize(
    "value",
    [
        b"not JSON at all \xff\x00",
        b'"a text"',
        b"[1, 2]",
        b"null",
        b"",
        b'{"a":\n {"b": "line\\nbreak"}}',
        b'{"value": 1, "headers": {}}',
    ],
)
def test_any_value_survives(transport: Transport, topic: str, value: bytes) -> None:
    with transport.sink(topic) as sink:
        sink.send(message(0, value))
    (got,) = read(transport, topic)
    assert got.headers == message(0).headers
    # A recording keeps each message on one line; between JSON's tokens a line break and a space are the same.
    assert got.value in {value, value.replace(b"\n", b" ")}


def test_messages_without_headers_stay_without(transport: Transport, topic: str) -> None:
    with transport.sink(topic) as sink:
        sink.send(Message({}, b'{"used":{}}'))
    assert read(transport, topic) == [Message({}, b'{"used":{}}')]


def test_each_partition_keeps_the_order_of_each_writer(transport: Transport, topic: str) -> None:
    with transport.sink(topic) as sink:
        for seq in range(300):
            sink.send(message(seq, attempt=f"a{seq % 3}"))
    seen: dict[tuple[int, str], list[int]] = defaultdict(list)
    with transport.source(topic) as source:
        for received in source:
            headers = received.message.headers
            seen[received.partition, headers["attempt"]].append(int(headers["seq"]))
    assert sum(map(len, seen.values())) == 300
    assert all(order == sorted(order) for order in seen.values())


def test_several_writers_at_once_lose_nothing(transport: Transport, topic: str) -> None:
    sinks = [transport.sink(topic) for _ in range(3)]
    for seq in range(100):
        for writer, sink in enumerate(sinks):
            sink.send(message(seq, attempt=f"w{writer}"))
    assert [sink.close().check().delivered for sink in sinks] == [100, 100, 100]
    assert Counter(m.headers["attempt"] for m in read(transport, topic)) == {"w0": 100, "w1": 100, "w2": 100}


def test_a_topic_that_does_not_exist_is_an_error_that_names_it(transport: Transport, topic: str) -> None:
    with pytest.raises(InputError, match=f"{topic}-none"):
        transport.source(f"{topic}-none")


def test_receipts_come_back_for_their_run_alone_and_once(transport: Transport) -> None:
    run, other = uuid.uuid4().hex, uuid.uuid4().hex
    receipts = transport.receipts()
    one, two = Receipt(run, "task_1/0 é", 5, "attempt_1"), Receipt(run, "b", 0)
    for receipt in (one, two, one, Receipt(other, "c", 1)):
        receipts.post(receipt)
    assert sorted(receipts.gather(run), key=lambda r: r.attempt) == [two, one]
    assert receipts.gather("never-ran") == []


def test_an_emitter_leaves_a_receipt_for_what_is_there(transport: Transport, topic: str) -> None:
    run = uuid.uuid4().hex
    sink = transport.sink(topic)
    emitter = Emitter(sink, Headers(run=run, dic="d", attempt="a", seq=0, task="t", function="map"), seal_bytes=2000)
    for number in range(100):
        emitter.emit(f"run:m{number}", [f"lake:tweets/v/f#{number}"], [f"run:i{number}"])
    receipt = emitter.close(sink.close, transport.receipts(), "attempt_0")
    got = read(transport, topic)
    assert receipt.messages == len(got) > 1
    assert sorted(int(m.headers["seq"]) for m in got) == list(range(len(got)))
    assert transport.receipts().gather(run) == [receipt]


@pytest.mark.parametrize("name", sorted(PARTITIONINGS))
def test_kafka_follows_the_partitioning(kafka_service: Settings, topic: str, name: str) -> None:
    settings = kafka_service.model_copy(update={"kafka": KafkaSettings(partitioning=name, partitions=4)})
    transport = KafkaTransport(settings)
    sent = [message(s, attempt=f"a{a}", function=f) for s in range(3) for a in range(8) for f in ("map", "reduce")]
    with transport.sink(topic) as sink:
        for one in sent:
            sink.send(one)
    expected: Callable[[Message], int] = lambda m: PARTITIONINGS[name](m.headers, 4)  # noqa: E731
    with transport.source(topic) as source:
        got = [(received.message, received.partition) for received in source]
    assert len(got) == len(sent)
    assert all(partition == expected(one) for one, partition in got)
    assert len({partition for _, partition in got}) > 1
