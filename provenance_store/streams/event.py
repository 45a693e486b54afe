"""Events of streams, and the key by which provenance knows them."""

from typing import Any

import msgspec

# After all times: what comes to an end is taken as if nothing could come any more.
END = 1 << 60


class EventKey(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A unique reference to one event: when it was made, its number in its stream, which stream, and after what delay.

    `timestamp` is in milliseconds. The delay of an event that an operator made counts from what triggered it; that of a
    source's event is how long it was on its way to us.
    """

    timestamp: int
    sequence: int
    stream: str
    delay: int = 0

    @property
    def triggered(self) -> int:
        """The moment of what triggered the operator that made it."""
        return self.timestamp - self.delay


class Event(msgspec.Struct, frozen=True, array_like=True):
    """A key with its content; whoever captures ancestors also notes which events it was made from directly."""

    key: EventKey
    content: Any
    parents: tuple[EventKey, ...] = ()
