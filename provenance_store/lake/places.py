"""Which position in its id each record of a rewritten file has, so that ids stay when what they name moves.

The position in an id is where the record stood when it was first written: the byte offset of its line, after
decompression, or its row in Parquet. A purge takes records out and makes lines shorter or longer, and what stands
behind moves. So a rewritten file has a *places* file, `<version>/_places/<file>.places`: pairs of little-endian int64,
the physical position and the original one. From a pair's physical position up to the next pair's, both grow alike;
where the original one is -1, no record begins. The last pair is the file's end, and the position that the next new
record gets: none is ever given twice. A file without a places file was never rewritten: both positions are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from provenance_store.model.files import write_whole

FOLDER = "_places"
TAKEN_OUT = -1
_NO_RECORD = -1
_PAIR_BYTES = 16

Positions: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Of one file: where its segments begin now, and where they did at first."""

    starts: Positions
    originals: Positions

    @classmethod
    def unmoved(cls, end: int) -> "Places":
        """Of a file that was never rewritten: so many rows, or bytes of lines."""
        pairs = [(0, 0), (end, end)] if end else [(0, 0)]
        return cls._of(np.array(pairs, np.int64))

    @classmethod
    def load(cls, version: Version, file: Path) -> "Places | None":
        """Those of a version's file; None where it was never rewritten."""
        path = version.at(places_name(version.name_of(file)))
        try:
            return cls.from_bytes(path.read_bytes())
        except FileNotFoundError:
            return None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, content: bytes) -> "Places":
        """As they stand in a places file."""
        pairs = np.frombuffer(content[: len(content) // _PAIR_BYTES * _PAIR_BYTES], "<i8").reshape(-1, 2)
        if pairs.nbytes < len(content) or not _are_sound(pairs):
            raise InputError("This is not a places file, or it is torn. Restore it: ids cannot be told without it.")
        return cls._of(pairs)

    def to_bytes(self) -> bytes:
        """As they stand in a places file."""
        return np.stack([self.starts, self.originals], axis=1).astype("<i8").tobytes()

    def write(self, version: Version, file: Path) -> None:
        """Put them beside the version's file, in one step."""
        path = places_path(version, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.to_bytes())

    @property
    def end(self) -> int:
        """Where the file ends: its rows, or its bytes after decompression."""
        return int(self.starts[-1])

    @property
    def next_original(self) -> int:
        """The position in the id of the next new record; all that ever were given are smaller."""
        return int(self.originals[-1])

    def heads(self) -> Positions:
        """Where records begin that must be told of one by one, even if all stay: what lies between moves with them."""
        filled = self.originals[:-1] != _NO_RECORD
        # Where no record begins, the one that reaches there begins one position before.
        return np.union1d(self.starts[:-1][filled], self.starts[:-1][~filled] - 1)

    def original(self, positions: "Positions | Sequence[int]") -> Positions:
        """The positions in the ids of the records that stand at these."""
        asked = np.asarray(positions, np.int64)
        segments = self._segments(asked)
        first = self.originals[segments]
        strays = asked[(first == _NO_RECORD) | (asked < 0) | (asked >= self.end)]
        if strays.size:
            raise InputError(
                f"A record begins at position {strays[0]}, where by the file's places none does: the file was changed "
                "without its places, or its purge has not finished."
            )
        return first + (asked - self.starts[segments])

    def physical(self, original: int) -> int | None:
        """Where the record with this position in its id stands now; None where it was taken out, or never was."""
        place = int(self.physicals([original])[0])
        return None if place == TAKEN_OUT else place

    def physicals(self, originals: "Positions | Sequence[int]") -> Positions:
        """The same of many: TAKEN_OUT where one was taken out, or never was."""
        asked = np.asarray(originals, np.int64)
        # The end is no segment: nothing stands in it.
        filled = np.flatnonzero(self.originals[:-1] != _NO_RECORD)
        if not filled.size:
            return np.full(asked.size, TAKEN_OUT)
        at = np.searchsorted(self.originals[filled], asked, side="right") - 1
        segments = filled[at]
        places = self.starts[segments] + asked - self.originals[segments]
        return np.where((at >= 0) & (places < self.starts[segments + 1]), places, TAKEN_OUT)

    def rewritten(
        self,
        before: "Positions | Sequence[int]",
        after: "Positions | Sequence[int]",
        *,
        end: int,
        appended: "Positions | Sequence[int]" = (),
    ) -> "Places":
        """Those of the file after a rewrite that keeps the order of its records.

        `before` tells where every record of the file stood, `after` where the same one stands now, or TAKEN_OUT;
        `appended` where new records stand, behind all others; `end` where the file ends now.
        """
        old, new, added = (np.asarray(positions, np.int64) for positions in (before, after, appended))
        kept = np.flatnonzero(new != TAKEN_OUT)
        starts = np.concatenate([new[kept], added, [end]])
        _check(self.end, old, new, starts)
        # New records go on from the end of all that ever was, and the end itself stands as one more behind them.
        ahead = np.append(added, end)
        originals = np.concatenate([self.original(old[kept]), self.next_original + ahead - ahead[0]])
        numbers = np.concatenate([kept, np.arange(old.size, old.size + ahead.size)])
        segments = np.append(self._segments(old), self._end_segment())

        # Neighbours share a segment if nothing was ever taken out between them and they keep their distance.
        unbroken = np.append(np.diff(segments) == 0, np.full(added.size, True))
        length = np.diff(starts)
        joined = (np.diff(numbers) == 1) & unbroken[numbers[:-1]] & (length == np.diff(originals))
        # A line that became longer reaches over positions of records that were taken out: it gets a segment for its
        # beginning alone, or they would seem to be still there.
        room = np.minimum(np.append(old[1:], self.end), self.starts[segments[:-1] + 1]) - old
        outgrown = np.append(length[: kept.size] > room[kept], np.full(added.size, False)) & ~joined

        begins = np.append(True, ~joined)
        begins[-1] = True
        pairs = np.concatenate(
            [
                np.stack([starts[begins], originals[begins]], axis=1),
                np.stack([starts[:-1][outgrown] + 1, np.full(outgrown.sum(), _NO_RECORD)], axis=1),
            ]
        )
        return Places._of(pairs[np.argsort(pairs[:, 0])])

    @classmethod
    def _of(cls, pairs: Positions) -> "Places":
        return cls(*np.ascontiguousarray(pairs.T, np.int64))

    def _segments(self, positions: Positions) -> Positions:
        return np.searchsorted(self.starts, positions, side="right") - 1

    def _end_segment(self) -> int:
        """The segment that the end goes on from, if it does."""
        last = self.starts.size - 1
        filled = last > 0 and self.originals[last - 1] != _NO_RECORD
        return last - int(filled and np.array_equal(np.diff(self.starts[-2:]), np.diff(self.originals[-2:])))


def read_places(version: Version) -> dict[str, bytes]:
    """Those of all rewritten files of a version, each by its path there, as they stand in their places files."""
    found = ((file, Places.load(version, file)) for file in version.files())
    return {version.name_of(file): places.to_bytes() for file, places in found if places is not None}


def places_path(version: Version, file: Path) -> Path:
    """Where the places of a version's file lie, or would."""
    return version.path / places_name(version.name_of(file))


def places_name(file: str) -> str:
    """The same as a name within the version."""
    return f"{FOLDER}/{file}.places"


def _check(end: int, before: Positions, after: Positions, starts: Positions) -> None:
    """A rewriter that tells nonsense must not spoil ids for ever."""
    if before.size != after.size:
        raise InputError(f"{before.size} records were told where they stood, and {after.size} where they stand.")
    stood = np.append(before, end)
    for positions, when in ((stood, "before"), (starts, "after")):
        if positions[0] != 0 or (np.diff(positions) <= 0).any():
            raise InputError(f"The positions {when} the rewrite must begin at 0, and each be smaller than the next.")


def _are_sound(pairs: Positions) -> bool:
    if not pairs.size:
        return False
    starts, originals = pairs.T
    filled = originals[originals != _NO_RECORD]
    grow = bool((np.diff(starts) > 0).all() and (np.diff(filled) > 0).all())
    return grow and starts[0] == 0 and originals[-1] != _NO_RECORD and filled[0] >= 0
