"""The one place that chooses a transport from the settings.

A task's process lives for seconds, so what it does not need is not imported: no Kafka client where recordings are
written, and no settings library where the driver has read the settings already.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from provenance_store.errors import TransportError
from provenance_store.transport.port import Transport

if TYPE_CHECKING:
    from provenance_store.settings import Settings


def open_transport(settings: "Settings") -> Transport:
    """Recordings where the settings name a folder for them, else Kafka."""
    if settings.recordings is not None:
        from provenance_store.transport.recording import RecordingTransport  # noqa: PLC0415 - see above

        return RecordingTransport(settings.recordings)
    from provenance_store.transport.kafka import KafkaTransport  # noqa: PLC0415 - see above

    return KafkaTransport(settings)


def open_driver_transport(settings: "Settings") -> Transport:
    """For a driver, which has few things to send and should not wait for them: after `make_topics`, one producer."""
    if settings.recordings is not None:
        return open_transport(settings)
    from provenance_store.transport.task import TaskTransport  # noqa: PLC0415 - see above

    return TaskTransport(settings)


def open_task_transport(dumped: Mapping[str, Any]) -> Transport:
    """The writers' ends for a process that runs one task, from settings that its driver read, checked and dumped."""
    told = msgspec.convert(dumped, _TaskSettings, strict=False)
    settings = cast("Settings", told)  # the same names with the same meaning, as far as a transport asks
    if told.recordings is not None:
        return open_transport(settings)
    from provenance_store.transport.task import TaskTransport  # noqa: PLC0415 - see above

    return TaskTransport(settings)


def make_topics(settings: "Settings", topic: str, *, required: bool) -> None:
    """Make the topics that tasks expect to find. Where it is not `required`, tasks tell of a broker that is away."""
    if settings.recordings is not None:
        return
    from provenance_store.transport.kafka import RECEIPTS_TOPIC, KafkaTransport  # noqa: PLC0415 - see above

    try:
        KafkaTransport(settings).ensure_topics(topic, RECEIPTS_TOPIC)
    except TransportError:
        if required:
            raise


def topic_of(dic: str) -> str:
    """The topic of a DIC: one each, so that its stream can be read alone."""
    return f"headwater.{dic}"


class _Secret(msgspec.Struct, frozen=True):
    value: str

    def get_secret_value(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return "(hidden)"


class _TaskKafka(msgspec.Struct, frozen=True, rename={"hidden_password": "sasl_password"}):
    """Kafka's settings without their defaults, because a dump holds all of them."""

    security_protocol: str
    sasl_mechanism: str
    sasl_username: str | None
    hidden_password: str | None
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    partitions: int
    replication: int
    retention_hours: int
    compression: str
    partitioning: str
    timeout_seconds: float
    bootstrap_servers: str | None

    @property
    def sasl_password(self) -> _Secret | None:
        return None if self.hidden_password is None else _Secret(self.hidden_password)


class _TaskServices(msgspec.Struct, frozen=True):
    kafka_port: int


class _TaskSettings(msgspec.Struct, frozen=True, rename={"recordings_folder": "recordings"}):
    recordings_folder: str | None
    kafka: _TaskKafka
    services: _TaskServices

    @property
    def recordings(self) -> Path | None:
        return None if self.recordings_folder is None else Path(self.recordings_folder)

    @property
    def bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers or f"127.0.0.1:{self.services.kafka_port}"
