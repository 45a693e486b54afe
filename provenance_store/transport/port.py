"""The port between jobs and reducer: a sink to send messages to, a source to read them from.

To add a transport, write a class for each end and pass `tests/contract/test_transport.py`. What callers rely on:

- `Sink.send` hands a message over and returns; it may raise a TransportError for an earlier message that failed.
- `Sink.close` waits until every message is confirmed durable, and tells how many were. It never swallows a failure:
  what is not confirmed within the time is in `Delivery.failed`, and `Delivery.check()` raises.
- Messages of one partition are read in the order in which they were sent. The partition of a message depends on the
  message and the partitioning alone, so a message sent again goes where it went before.
- `Source` yields every message from the beginning, whatever its value holds: reading values is the reducer's work.
- A receipt is what a writer leaves when all it sent is confirmed. Its run's driver gathers them for the manifest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from provenance_store.errors import DeliveryError
from provenance_store.model.message import Message


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the messages handed to a sink."""

    delivered: int
    failed: int
    reason: str = ""

    def check(self) -> "Delivery":
        """Itself, if all was delivered; else a DeliveryError that says how much was not."""
        if self.failed:
            total = self.delivered + self.failed
            reason = self.reason or "no reason given"
            raise DeliveryError(f"{self.failed} of {total} messages were not confirmed: {reason}.")
        return self


class Received(NamedTuple):
    """A message with the place it was read from."""

    message: Message
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many messages a writer sent, all confirmed, and which try of which task it was."""

    run: str
    attempt: str
    messages: int
    task_attempt: str = ""


class Sink(Protocol):
    """Where a job sends its messages."""

    def send(self, message: Message) -> None:
        """Hand one message over."""

    def close(self, timeout: float | None = None) -> Delivery:
        """Wait for every confirmation, release everything, tell what was delivered. Closing again tells the same."""


class Source(Protocol):
    """Where the reducer reads messages. Iterating ends at the end of what was there when it began."""

    def __iter__(self) -> Iterator[Received]:
        """Every message from the beginning."""

    def close(self) -> None:
        """Release everything."""


class Receipts(Protocol):
    """Where writers leave receipts and the run's driver gathers them."""

    def post(self, receipt: Receipt) -> None:
        """Leave a receipt; returns when it is durable."""

    def gather(self, run: str) -> list[Receipt]:
        """Every receipt of a run, each once."""


class Transport(Protocol):
    """One place messages travel through, with all its ends."""

    def sink(self, topic: str) -> Sink:
        """A sink to a topic, which is made if it is not there."""

    def source(self, topic: str) -> Source:
        """A source of a topic's messages."""

    def receipts(self) -> Receipts:
        """The receipts of every run."""

    def close(self) -> None:
        """Give up what its ends share."""


class Closing(ABC):
    """Makes a sink or source usable in a `with` block; the block's own error goes first."""

    @abstractmethod
    def close(self) -> Delivery | None:
        """Release everything; a sink tells what was delivered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        delivery = self.close()
        if error is None and isinstance(delivery, Delivery):
            delivery.check()
