import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from provenance_store.errors import PortTakenError
from provenance_store.services import ports
from provenance_store.services.kafka import Kafka
from provenance_store.settings import ServiceSettings, Settings


@pytest.fixture(params=["127.0.0.1", "", "::"])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    family = socket.AF_INET6 if request.param == "::" else socket.AF_INET
    with socket.socket(family) as server:
        server.bind((request.param, 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_names_port_owner_and_setting(taken: int, tmp_path: Path) -> None:
    service = Kafka(Settings(home=tmp_path, services=ServiceSettings(kafka_port=taken)))
    with pytest.raises(PortTakenError) as caught:
        ports.require_free(service)
    for part in (f"port {taken} ", f"process {os.getpid()} ", "HEADWATER_SERVICES__KAFKA_PORT"):
        assert part in str(caught.value)


def test_a_free_port_is_free_again_right_after_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            connection, _ = server.accept()
            connection.close()
        assert ports.accepts(port)
        assert not ports.is_free(port)
    assert ports.is_free(port)
    assert not ports.accepts(port)
    assert ports.owner(port) is None
