"""Where the records of a file go in a rewrite, told run by run from its beginning to its end."""

from bisect import bisect_left, bisect_right

from provenance_store.errors import InputError
from provenance_store.lake.places import TAKEN_OUT, Places


class Moves:
    """Counts what is read and written, in bytes of lines or in rows.

    Only where something happens is a record told of, so that what is kept of a large file takes no memory.
    """

    def __init__(self, places: Places | None) -> None:
        self._old = places
        self._heads = [] if places is None else places.heads().tolist()
        self._before: list[int] = []
        self._after: list[int] = []
        self._appended: list[int] = []
        self.read = 0
        self.written = 0

    def keep(self, length: int) -> None:
        """So much stays as it is: whole records, or nothing."""
        if not length:
            return
        begin, end, moved = self.read, self.read + length, self.written - self.read
        # A run that was moved in parts before is told of in these parts.
        parts = self._heads[bisect_right(self._heads, begin) : bisect_left(self._heads, end)]
        for place in (begin, *parts):
            self._tell(place, place + moved)
        self.read, self.written = end, end + moved

    def remove(self, length: int) -> None:
        """So much is left out: whole records, or nothing."""
        if length:
            self._tell(self.read, TAKEN_OUT)
            self.read += length

    def change(self, length: int, now: int) -> None:
        """One record gets another length."""
        self._tell(self.read, self.written)
        self.read += length
        self.written += now

    def append(self, length: int) -> None:
        """One new record, behind all others."""
        self._appended.append(self.written)
        self.written += length

    def places(self) -> Places:
        """Those of the file as it was written, when all of it has been read."""
        old = Places.unmoved(self.read) if self._old is None else self._old
        if old.end != self.read:
            raise InputError(
                f"The file ends at {self.read}, and by its places at {old.end}: it was changed without them, and ids "
                "cannot be told. Restore both."
            )
        return old.rewritten(self._before, self._after, end=self.written, appended=self._appended)

    def _tell(self, before: int, after: int) -> None:
        self._before.append(before)
        self._after.append(after)
