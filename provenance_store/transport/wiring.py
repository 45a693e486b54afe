"""The one place that chooses a transport from the settings."""

from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.port import Transport
from provenance_store.transport.recording import RecordingTransport


def open_transport(settings: Settings) -> Transport:
    """Recordings where the settings name a folder for them, else Kafka."""
    if settings.recordings is not None:
        return RecordingTransport(settings.recordings)
    return KafkaTransport(settings)


def topic_of(dic: str) -> str:
    """The topic of a DIC: one each, so that its stream can be read alone."""
    return f"headwater.{dic}"
