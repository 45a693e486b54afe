"""Windows and triggers: which events an operator looks at, and when it looks.

A trigger fires at moments. `events`: at the events whose place in the input, counted from 1, leaves `offset` when
divided by `every`. `time`: at the times, in milliseconds, that leave `offset` when divided by `every`; over a length
window, if an event has come since the moment before. From an empty window nothing is made.
"""

from typing import Literal, TypeAlias

import msgspec

from provenance_store.errors import InputError

Closed: TypeAlias = Literal["left", "right", "both"]


class Window(msgspec.Struct, frozen=True):
    """The last `size` milliseconds (`time`) or events (`length`) before a moment.

    `closed` says which ends belong to a time window: `right` is (T - size, T], as windows over sequences have it,
    `left` is [T - size, T), as Spark's have it, and `both` is [T - size, T], as Esper's have it. A length window that
    a time triggers counts back from T, or with `left` from before T; one that an event triggers, from that event.
    """

    kind: Literal["time", "length"]
    size: int
    closed: Closed = "right"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"A window of size {self.size} holds nothing: give it at least 1.")
        if self.kind == "length" and self.closed == "both":
            raise InputError('A length window counts events up to a moment: "both" ends mean nothing for it.')

    @property
    def first(self) -> int:
        """The earliest time in a time window, counted from the moment."""
        return 1 - self.size if self.closed == "right" else -self.size

    @property
    def last(self) -> int:
        """The latest time in a window, counted from the moment."""
        return -1 if self.closed == "left" else 0


class Trigger(msgspec.Struct, frozen=True):
    """When an operator looks at its windows."""

    kind: Literal["events", "time"] = "events"
    every: int = 1
    offset: int = 0

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"A trigger cannot fire every {self.every}: give it at least 1.")
        if not 0 <= self.offset < self.every:
            raise InputError(f"The offset {self.offset} must be from 0 up to {self.every - 1}, below `every`.")

    def fires(self, number: int) -> bool:
        """Whether it fires at this place, or this time."""
        return number % self.every == self.offset

    def next_from(self, time: int) -> int:
        """The first time from this one on at which it fires."""
        return time + (self.offset - time) % self.every


def tumbling(kind: Literal["time", "length"], size: int, offset: int = 0) -> tuple[Window, Trigger]:
    """Windows that touch and do not overlap."""
    return Window(kind, size), Trigger("time" if kind == "time" else "events", size, offset)


def sliding(kind: Literal["time", "length"], size: int, every: int, offset: int = 0) -> tuple[Window, Trigger]:
    """Windows of one kind that move on by less, or more, than they hold."""
    return Window(kind, size), Trigger("time" if kind == "time" else "events", every, offset)
