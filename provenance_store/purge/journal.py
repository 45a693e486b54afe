"""How far a purge is, in its plan's folder, so that whoever goes on after a crash knows what is left.

While it drafts, nothing in the lake has changed, and all of it can be given up. Once it switches there is no way back,
only forward: every draft is whole by then, and each switch can be asked for again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from provenance_store.model.files import write_whole
from provenance_store.purge.done import StepDone
from provenance_store.purge.plan import StoredPlan

FILE = "journal.json"


class _Noted(msgspec.Struct, frozen=True, kw_only=True):
    began: str
    # What was done to a version, by its reference, once its draft is whole.
    drafted: dict[str, StepDone] = {}
    switching: bool = False
    # Stream runs of which nothing is kept any more to replay from.
    forgotten: list[str] = []
    ended: str | None = None


class Journal:
    """The journal of one purge; every note is on disk before the next thing is done."""

    def __init__(self, path: Path, noted: _Noted) -> None:
        self._path = path
        self._noted = noted

    @classmethod
    def open(cls, stored: StoredPlan) -> "Journal | None":
        """The journal of a purge that was begun."""
        path = stored.path / FILE
        try:
            return cls(path, msgspec.json.decode(path.read_bytes(), type=_Noted))
        except FileNotFoundError:
            return None

    @classmethod
    def begin(cls, stored: StoredPlan) -> "Journal":
        """The journal of a purge that begins now."""
        journal = cls(stored.path / FILE, _Noted(began=_now()))
        journal._note()
        return journal

    @property
    def began(self) -> str:
        """When it was begun first."""
        return self._noted.began

    @property
    def ended(self) -> str | None:
        """When the lake was as planned."""
        return self._noted.ended

    @property
    def is_switching(self) -> bool:
        """Whether there is no way back."""
        return self._noted.switching

    @property
    def done(self) -> dict[str, StepDone]:
        """What was done to the versions whose drafts are whole, by their references."""
        return self._noted.drafted

    def note_draft(self, done: StepDone) -> None:
        """A draft is whole."""
        self._note(drafted={**self.done, f"{done.dataset}/{done.version}": done})

    def note_switching(self) -> None:
        """All drafts are whole, and versions will be switched."""
        self._note(switching=True)

    @property
    def forgotten(self) -> list[str]:
        """The stream runs of which nothing is kept any more to replay from."""
        return self._noted.forgotten

    def note_forgotten(self, runs: Sequence[str]) -> None:
        """What was kept of these stream runs is removed."""
        self._note(forgotten=list(runs))

    def note_end(self) -> None:
        """The lake is as planned."""
        self._note(ended=_now())

    def give_up(self) -> None:
        """Forget a purge that has changed nothing."""
        self._path.unlink()

    def _note(self, **changes: object) -> None:
        self._noted = msgspec.structs.replace(self._noted, **changes)
        write_whole(self._path, msgspec.json.format(msgspec.json.encode(self._noted)) + b"\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
