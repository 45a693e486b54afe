"""The dead-letter topic: every message that could not be taken in, as it came, with the reason; each once."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from provenance_store.errors import InputError, TransportError
from provenance_store.model.message import Message
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport

SUFFIX = ".rejected"
REASON = "reason"
# Where the message was rejected from, so that reading a topic again does not send it again.
ORIGIN = "rejected-from"
# In a letter without its value: how large that is. It stands in the topic where it was rejected from.
LEFT_OUT = "left-out"
# A letter up to this size surely fits a message.
_LARGE = 512 << 10
_LONGEST_REASON = 500

# Partition and offset, and there a message and why it was rejected.
Letter: TypeAlias = tuple[int, int, tuple[Message, str]]


def send_rejected(settings: Settings, topic: str, letters: Sequence[Letter]) -> None:
    """Send those that are not there yet; nothing to send makes no topic."""
    _send(settings, topic, [letter for letter in letters if _size(letter) <= _LARGE])
    for letter in letters:
        if _size(letter) > _LARGE:
            _send_large(settings, topic, letter)


def _send(settings: Settings, topic: str, rejected: Iterable[Letter]) -> None:
    letters = {f"{topic}/{partition}/{offset}": letter for partition, offset, letter in rejected}
    if not letters:
        return
    transport = KafkaTransport(settings)
    for origin in _origins(transport, topic + SUFFIX):
        letters.pop(origin, None)
    if letters:
        with transport.sink(topic + SUFFIX) as sink:
            for origin, (message, reason) in letters.items():
                sink.send(Message({**message.headers, REASON: _shorten(reason), ORIGIN: origin}, message.value))


def _send_large(settings: Settings, topic: str, letter: Letter) -> None:
    """What just fitted a message may be too large with the reason beside it; then the value stays where it is."""
    try:
        _send(settings, topic, [letter])
    except TransportError:
        partition, offset, (message, reason) = letter
        told = Message({LEFT_OUT: f"{len(message.value)} bytes"}, b"")
        _send(settings, topic, [(partition, offset, (told, reason))])


def _shorten(reason: str) -> str:
    """A reason as a header holds it: what was wrong may be a text of megabytes."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    half = _LONGEST_REASON // 2
    return f"{reason[:half]} … {reason[-half:]}"


def _size(letter: Letter) -> int:
    _, _, (message, _) = letter
    return len(message.value) + sum(len(name) + len(text) for name, text in message.headers.items())


def _origins(transport: KafkaTransport, topic: str) -> set[str]:
    try:
        source = transport.source(topic)
    except InputError:  # there is no such topic yet
        return set()
    with source:
        return {received.message.headers.get(ORIGIN, "") for received in source}
