"""Which runs a stream has shown so far, and which of them can be finished: all that a manifest counts is there.

A run's messages are judged only when there can be enough of them, so that following a stream costs no more than adding
up what its parts tell.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import polars as pl

from provenance_store.model.message import Manifest
from provenance_store.reduction.completeness import UNKNOWN_RUN, Judgement, judge
from provenance_store.reduction.state import Part, State


class RunKey(NamedTuple):
    """A run in a topic."""

    topic: str
    run: str


class Progress(NamedTuple):
    """What a run has shown so far."""

    messages: int
    bytes: int
    edges_in: int
    edges: int
    expected: int | None  # messages that its manifest counts; None before it has come


class Tracker:
    """The parts of a state, by the runs they are of."""

    def __init__(self, state: State, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._clock = clock
        # The stream adds from a thread of its own.
        self._lock = threading.RLock()
        self._parts: dict[str, dict[str | None, list[Part]]] = {}
        # All runs that ever showed, so that it stays the same whose a message without a run is.
        self._named: dict[str, set[str]] = {}
        self._forgotten: set[RunKey] = set()
        self._manifests: dict[RunKey, Manifest] = {}
        self._heard: dict[RunKey, float] = {}
        self._judged: dict[RunKey, tuple[int, Judgement]] = {}
        for topic, run in state.forgotten():
            self._note_forgotten(topic, run)

    def add(self, parts: Iterable[Part]) -> None:
        """Take in what a batch brought."""
        with self._lock:
            for part in parts:
                self._parts.setdefault(part.topic, {}).setdefault(part.run, []).append(part)
                if part.run is not None:
                    self._named.setdefault(part.topic, set()).add(part.run)
                self._heard[RunKey(part.topic, part.run or UNKNOWN_RUN)] = self._clock()
                if part.manifests and part.run is not None:
                    self._read_manifests(RunKey(part.topic, part.run), part)

    def runs(self) -> list[RunKey]:
        """All runs that showed, in order; messages without a run are of the only one, or one by themselves."""
        with self._lock:
            return sorted(
                {RunKey(topic, self._owner(topic, run)) for topic, by_run in self._parts.items() for run in by_run}
            )

    def parts(self, key: RunKey) -> list[Part]:
        """The parts of a run."""
        with self._lock:
            by_run = self._parts.get(key.topic, {})
            own = list(by_run.get(key.run, ()))
            if self._owner(key.topic, None) == key.run:
                own += by_run.get(None, ())
            return own

    def forget(self, keys: Collection[RunKey]) -> None:
        """Free all that is kept of runs; what comes of them from here on stands alone."""
        with self._lock:
            parts = [part for key in keys for part in self.parts(key)]
            self._state.forget(parts)
            for key in keys:
                self._judged.pop(key, None)
                self._manifests.pop(key, None)
            for part in parts:
                self._parts[part.topic].pop(part.run, None)
                self._note_forgotten(part.topic, part.run)

    def is_forgotten(self, key: RunKey) -> bool:
        """Whether some of the run's messages are not kept any more."""
        return key in self._forgotten

    def progress(self, key: RunKey) -> Progress:
        """How far a run has come."""
        parts = self.parts(key)
        manifest = self._manifests.get(key)
        return Progress(
            messages=sum(part.messages - part.manifests for part in parts),
            bytes=sum(part.bytes for part in parts),
            edges_in=sum(part.edges_in for part in parts),
            edges=sum(part.edges for part in parts),
            expected=None if manifest is None else sum(manifest.attempts.values()),
        )

    def quiet_for(self, key: RunKey) -> float:
        """Seconds since the run's last message was read."""
        return self._clock() - self._heard.get(key, self._clock())

    def is_complete(self, key: RunKey) -> bool:
        """Whether everything that the run's manifest counts has been read."""
        progress = self.progress(key)
        if progress.expected is None or progress.messages < progress.expected:
            return False
        return not self.judge(key).missing

    def judge(self, key: RunKey) -> Judgement:
        """The run's messages judged; again only where more have come."""
        parts = self.parts(key)
        known = self._judged.get(key)
        if known is None or known[0] != len(parts):
            messages = self._state.read_messages(parts).with_columns(run=pl.lit(key.run))
            (judgement,) = judge(messages)
            known = self._judged[key] = len(parts), judgement
        return known[1]

    def read_at(self, key: RunKey) -> int:
        """When the last of the run was read, in milliseconds of the clock."""
        return max((part.read_at for part in self.parts(key)), default=0)

    def _owner(self, topic: str, run: str | None) -> str:
        """The run that a part belongs to, by the run that it names."""
        named = self._named.get(topic, set())
        return run or (next(iter(named)) if len(named) == 1 else UNKNOWN_RUN)

    def _note_forgotten(self, topic: str, run: str | None) -> None:
        self._forgotten.add(RunKey(topic, run or UNKNOWN_RUN))
        if run is not None:
            self._named.setdefault(topic, set()).add(run)

    def _read_manifests(self, key: RunKey, part: Part) -> None:
        table = self._state.read_messages([part]).filter(pl.col("manifest").is_not_null(), pl.col("reason").is_null())
        for value in table["manifest"]:
            manifest = Manifest.from_bytes(value)
            known = self._manifests.get(key)
            if known is None or manifest.generation >= known.generation:
                self._manifests[key] = manifest
