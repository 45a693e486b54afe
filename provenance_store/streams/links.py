"""What the lake graph asks of streams: from records to those that stream runs made them from, or from them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from provenance_store.errors import IdError, InputError
from provenance_store.model.ids import RecordId
from provenance_store.storage.paths import RemotePath
from provenance_store.streams.folders import read_facts
from provenance_store.streams.runs import Links, StreamRun


class StreamLinks:
    """The stream runs of a lake, each opened once, and again when more is told of it or a purge has changed it."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self._runs: dict[str, StreamRun] = {}
        self._replay = False

    def replaying(self, replay: bool) -> "StreamLinks":
        """The same runs, replayed where keys leave several possibilities, or not."""
        other = StreamLinks(self._lake)
        other._runs, other._replay = self._runs, replay
        return other

    def told_of(self, run: str, direction: Literal["backward", "forward"], ids: Sequence[str]) -> set[str] | None:
        """Of which of the records the run's assertions tell; None where they are not in this lake.

        Forward they tell of all that stand at a position: one that no source has taken in led to nothing.
        """
        opened = self._open(run)
        if opened is None:
            return None
        return opened.made(ids) if direction == "backward" else set(filter(_is_positional, ids))

    def links(self, run: str, direction: Literal["backward", "forward"], ids: Sequence[str]) -> Links:
        """What results among the ids were made from, or what was made from records among them."""
        opened = self._open(run)
        if opened is None:
            return Links.none()
        if direction == "backward":
            made = opened.made(ids)
            asked = [one for one in ids if one in made]
            return self._ask(lambda replayed: opened.backward(asked, replayed=replayed))
        return self._ask(lambda replayed: opened.forward(ids, replayed=replayed))

    def _ask(self, ask: Callable[[bool], Links]) -> Links:
        if self._replay:
            try:
                return ask(True)
            except InputError:
                pass  # a first input is gone, by a purge perhaps: what keys tell is told, and that it is not exact
        return ask(False)

    def _open(self, run: str) -> StreamRun | None:
        if isinstance(self._lake, RemotePath):
            return None
        known = self._runs.get(run)
        if known is None or known.facts != read_facts(self._lake, run):
            try:
                self._runs[run] = StreamRun(self._lake, run)
            except InputError:
                return None
        return self._runs[run]


def _is_positional(one: str) -> bool:
    try:
        return RecordId.parse(one).position is not None
    except IdError:
        return False
