"""The keys of a stream's events as columns, in the order of the stream."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from provenance_store.errors import InputError
from provenance_store.streams.event import EventKey

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
NONE: Numbers = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Keys:
    """Timestamps never fall and sequence numbers always rise; the place of an event is its row."""

    stream: str
    timestamps: Numbers
    sequences: Numbers
    delays: Numbers

    @classmethod
    def of(cls, stream: str, keys: Iterable[EventKey]) -> "Keys":
        """The columns of keys that are in the order of their stream."""
        rows = np.array([(key.timestamp, key.sequence, key.delay) for key in keys], np.int64).reshape(-1, 3)
        return cls(stream, rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def triggered(self) -> Numbers:
        """Of each event, the moment of what triggered its making."""
        return self.timestamps - self.delays

    def before(self, until: int) -> "Keys":
        """Those of events before a time."""
        return self.take(slice(int(np.searchsorted(self.timestamps, until))))

    def take(self, places: Numbers | slice) -> "Keys":
        """Those at some places."""
        return Keys(self.stream, self.timestamps[places], self.sequences[places], self.delays[places])

    def places_of(self, sequences: Numbers) -> Numbers:
        """Where the events with these numbers stand."""
        found = np.searchsorted(self.sequences, sequences)
        there = found < len(self)
        there[there] = self.sequences[found[there]] == sequences[there]
        if not there.all():
            missing = int(sequences[~there][0])
            raise InputError(
                f"Stream {self.stream!r} has no event with number {missing:,}: its assertions do not tell of it."
            )
        return found

    def rows(self) -> list[EventKey]:
        """The keys one by one, for people."""
        columns = (self.timestamps.tolist(), self.sequences.tolist(), self.delays.tolist())
        return [EventKey(time, number, self.stream, delay) for time, number, delay in zip(*columns, strict=True)]


def spread_out(first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """Ranges written out: of each number in any of them, the range that it is in and the number."""
    counts = np.maximum(last - first + 1, 0)
    rows = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + within
