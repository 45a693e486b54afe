"""The dead-letter topic: every message that could not be read, as it came, with the reason; each once."""

from collections.abc import Iterable

from provenance_store.errors import InputError
from provenance_store.model.message import Message
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport

SUFFIX = ".rejected"
REASON = "reason"
# Where the message was rejected from, so that reducing a topic again does not send it again.
ORIGIN = "rejected-from"


def send_rejected(settings: Settings, topic: str, rejected: Iterable[tuple[int, int, tuple[Message, str]]]) -> int:
    """Send what is not there yet of (partition, offset, (message, reason)); how many that were.

    Nothing to send makes no topic.
    """
    letters = {f"{topic}/{partition}/{offset}": letter for partition, offset, letter in rejected}
    if not letters:
        return 0
    transport = KafkaTransport(settings)
    for origin in _origins(transport, topic + SUFFIX):
        letters.pop(origin, None)
    if letters:
        with transport.sink(topic + SUFFIX) as sink:
            for origin, (message, reason) in letters.items():
                sink.send(Message({**message.headers, REASON: reason, ORIGIN: origin}, message.value))
    return len(letters)


def _origins(transport: KafkaTransport, topic: str) -> set[str]:
    try:
        source = transport.source(topic)
    except InputError:  # there is no such topic yet
        return set()
    with source:
        return {received.message.headers.get(ORIGIN, "") for received in source}
