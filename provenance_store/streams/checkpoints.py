"""States of a run's buckets as they were before some of its steps, the last ones: what a replay can begin at.

They hold events, as Spark's own checkpoints do, and so are kept apart from the lake, for their owner alone. Where a
purge takes records away that a run has read, the run's go too.
"""

import shutil
from pathlib import Path

from provenance_store.model.files import FOR_OWNER, write_whole
from provenance_store.model.ids import check_run

_FOLDER = "stream_checkpoints"
_CACHE = "stream_cache"


class Checkpoints:
    """The states of one bucket, by the number of the last step in them."""

    def __init__(self, home: Path, run: str, bucket: int) -> None:
        self._folder = home.absolute() / _FOLDER / run / f"{bucket:03}"

    def write(self, step: int, state: bytes, *, most: int) -> None:
        """Keep a state, and of all no more than so many."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._folder / f"{step:08}", state, mode=FOR_OWNER)
        for old in self.steps()[:-most]:
            (self._folder / f"{old:08}").unlink(missing_ok=True)

    def steps(self) -> list[int]:
        """The steps behind which there is a state."""
        return sorted(int(path.name) for path in self._folder.glob("[0-9]*"))

    def last_before(self, step: int) -> int | None:
        """The last step before this one behind which there is a state; None where only the beginning is."""
        return max((one for one in self.steps() if one < step), default=None)

    def read(self, step: int) -> bytes:
        """The state behind a step."""
        return (self._folder / f"{step:08}").read_bytes()

    def size(self) -> int:
        """How many bytes they take."""
        return sum(path.stat().st_size for path in self._folder.glob("[0-9]*"))


def forget(home: Path, run: str) -> None:
    """Remove all that is kept of a run to replay from."""
    for folder in _folders(home, run):
        if folder.exists():
            shutil.rmtree(folder)


def is_kept(home: Path, run: str) -> bool:
    """Whether anything is."""
    return any(folder.exists() for folder in _folders(home, run))


def _folders(home: Path, run: str) -> list[Path]:
    return [home.absolute() / folder / check_run(run) for folder in (_FOLDER, _CACHE)]
