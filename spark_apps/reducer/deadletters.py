"""The dead-letter topic: every message that could not be read, as it came, with the reason; each once."""

from collections.abc import Iterable

from provenance_store.errors import InputError
from provenance_store.model.message import Message
from provenance_store.reduction.exact import Rejected
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport

SUFFIX = ".rejected"
REASON = "reason"
# Where the message was rejected from, so that reducing a topic again does not send it again.
ORIGIN = "rejected-from"


def send_rejected(settings: Settings, topic: str, rejected: Iterable[tuple[int, int, Rejected]]) -> int:
    """Send what (partition, offset, rejected) is not there yet; how many were sent. Nothing to send makes no topic."""
    letters = {f"{topic}/{partition}/{offset}": letter for partition, offset, letter in rejected}
    if not letters:
        return 0
    transport = KafkaTransport(settings)
    for origin in _origins(transport, topic + SUFFIX):
        letters.pop(origin, None)
    if letters:
        with transport.sink(topic + SUFFIX) as sink:
            for origin, letter in letters.items():
                headers = {**letter.message.headers, REASON: letter.reason, ORIGIN: origin}
                sink.send(Message(headers, letter.message.value))
    return len(letters)


def _origins(transport: KafkaTransport, topic: str) -> set[str]:
    try:
        source = transport.source(topic)
    except InputError:  # there is no such topic yet
        return set()
    with source:
        return {received.message.headers.get(ORIGIN, "") for received in source}
