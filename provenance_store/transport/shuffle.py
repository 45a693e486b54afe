"""The simulator of bad streams: a recording with messages out of order, repeated and lost, alike for the same seed.

Paper 003 (Section VI) makes such streams from a recording in order, with a given share of the elements out of place; it
does not say how far. Here they change places with one another anywhere in the stream: each stands where it did not
stand before, and distances are as large as they get. Only the places of lines are held in memory.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import BinaryIO, NamedTuple, TypeVar

from provenance_store.errors import InputError
from provenance_store.transport.port import Closing, Received
from provenance_store.transport.recording import SUFFIX, decode_line

T = TypeVar("T")

_ALL = 100.0


class Shares(NamedTuple):
    """Of a hundred messages, how many are out of order, come twice, and never come."""

    displaced: float = 0.0
    repeated: float = 0.0
    dropped: float = 0.0

    def check(self) -> "Shares":
        """Itself, if there can be such a stream; else an InputError."""
        for share in self:
            if not (math.isfinite(share) and 0 <= share <= _ALL):
                raise InputError(f"{share:g} is not a share of the messages: name a percentage from 0 to 100.")
        if self.repeated + self.dropped > _ALL:
            raise InputError(
                f"{self.repeated:g} % of the messages to repeat and {self.dropped:g} % to drop are more than there "
                "are: a message that is dropped cannot be repeated."
            )
        return self


class _Line(NamedTuple):
    """Where a message stands."""

    file: int
    number: int
    offset: int
    size: int


class ShuffledSource(Closing):
    """Reads a recording, or all of a folder of them, with messages out of order, repeated and dropped.

    A message comes again anywhere behind its place. Of those that come, copies too, the share is then put out of order.
    The manifest is a message like any other.
    """

    def __init__(self, recording: Path, shares: Shares, *, seed: int) -> None:
        shares.check()
        if not recording.exists():
            raise InputError(f"There is no recording {recording}.")
        self._recording = recording
        self._files = sorted(recording.glob(f"*{SUFFIX}")) if recording.is_dir() else [recording]
        self._lines = list(self._find_lines())
        if not self._lines:
            raise InputError(f"{recording} holds no message, so there is nothing to shuffle.")
        random = Random(seed)  # noqa: S311 - a simulation, to be repeated
        come = _repeat_and_drop(len(self._lines), shares, random)
        self._order = displace(come, shares.displaced, random)
        self.read = len(self._lines)
        self.displaced = _count_displaced(len(come), shares.displaced)
        self.dropped = self.read - len(set(come))
        self.repeated = len(come) - len(set(come))

    def __iter__(self) -> Iterator[Received]:
        with ExitStack() as stack:
            try:
                opened = [stack.enter_context(file.open("rb")) for file in self._files]
            except OSError as error:
                raise self._unreadable(error) from error
            for place in self._order:
                line = self._lines[place]
                yield Received(decode_line(self._read_line(opened[line.file], line)), line.file, line.number)

    def close(self) -> None:
        """Nothing is held between iterations."""

    def _find_lines(self) -> Iterator[_Line]:
        try:
            for number, path in enumerate(self._files):
                with path.open("rb") as file:
                    offset = 0
                    for place, line in enumerate(file):
                        if line.strip():
                            yield _Line(number, place, offset, len(line))
                        offset += len(line)
        except OSError as error:
            raise self._unreadable(error) from error

    def _read_line(self, file: BinaryIO, line: _Line) -> bytes:
        try:
            file.seek(line.offset)
            return file.read(line.size)
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"The recording {self._recording} cannot be read: {error.strerror}.")


def displace(items: Sequence[T], percent: float, random: Random) -> list[T]:
    """The items with so many percent of them at the place of another of these."""
    shuffled = list(items)
    places = random.sample(range(len(items)), _count_displaced(len(items), percent))
    # One circle through all of them: none stays where it is, as some would in a mere permutation.
    for place, other in zip(places, places[1:] + places[:1], strict=True):
        shuffled[place] = items[other]
    return shuffled


def _repeat_and_drop(count: int, shares: Shares, random: Random) -> list[int]:
    """The numbers of the messages that come, in the order of the recording, copies anywhere behind."""
    repeats = _share(count, shares.repeated)
    drops = min(_share(count, shares.dropped), count - repeats)
    chosen = random.sample(range(count), repeats + drops)
    dropped = set(chosen[repeats:])
    placed = [(float(number), number) for number in range(count) if number not in dropped]
    placed += [(random.uniform(number, count), number) for number in chosen[:repeats]]
    return [number for _, number in sorted(placed)]


def _count_displaced(count: int, percent: float) -> int:
    chosen = _share(count, percent)
    # One alone cannot be out of order.
    return 2 * (count > 1) if chosen == 1 else chosen


def _share(count: int, percent: float) -> int:
    return round(count * percent / _ALL)
