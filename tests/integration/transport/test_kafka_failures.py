"""A broker that goes away is noticed: nothing is taken for delivered that was not confirmed."""

from pathlib import Path

import pytest

from provenance_store.errors import DeliveryError, TransportError
from provenance_store.model.message import Headers, Message
from provenance_store.services import lifecycle
from provenance_store.services.registry import services
from provenance_store.transport.kafka import KafkaTransport
from tests.services_fixtures import running

PATIENCE = 4.0


def message(seq: int, size: int = 20) -> Message:
    headers = Headers(run="r", dic="d", attempt="a", seq=seq, task="t", function="map")
    return Message.of(headers, b'{"used":{"_:0":{"x":"' + b"y" * size + b'"}}}')


def test_a_stopped_broker_is_told_and_a_started_one_has_all_that_was_confirmed(tmp_path: Path) -> None:
    with running(tmp_path, "kafka") as patient:
        kafka = patient.kafka.model_copy(update={"timeout_seconds": PATIENCE})
        settings = patient.model_copy(update={"kafka": kafka})
        transport = KafkaTransport(settings)
        sink = transport.sink("t")
        for seq in range(10):
            sink.send(message(seq))
        assert sink.close().check().delivered == 10

        sink = transport.sink("t")
        sink.send(message(10))
        (service,) = services(settings, ["kafka"])
        lifecycle.down(service, print)
        sink.send(message(11))
        delivery = sink.close(timeout=PATIENCE)
        assert delivery.failed >= 1
        assert delivery.delivered + delivery.failed == 2
        with pytest.raises(DeliveryError, match=r"of 2 messages were not confirmed: \w+"):
            delivery.check()
        with pytest.raises(TransportError, match="headwater up kafka"):
            transport.sink("t")
        with pytest.raises(TransportError, match="headwater up kafka"):
            transport.source("t")

        lifecycle.up(service, print)
        with transport.source("t") as source:
            got = {int(received.message.headers["seq"]) for received in source}
        assert set(range(10)) <= got
        assert len(got) >= 10 + delivery.delivered


def test_a_message_larger_than_the_broker_takes_is_an_error_not_a_loss(tmp_path: Path) -> None:
    with running(tmp_path, "kafka") as settings:
        transport = KafkaTransport(settings)
        sink = transport.sink("t")
        sink.send(message(0))
        with pytest.raises(TransportError, match="MessageSizeTooLarge"):
            sink.send(message(1, size=3 << 20))
        delivery = sink.close()
        assert (delivery.delivered, delivery.failed) == (1, 1)
