"""The reducer as an application: a job that ends with its runs, or a service that follows topics while it lives.

Both read the stream into a state on disk, from where it was left, and finish a run when all that its manifest counts
is there. A job reads what there is, waits for as long as it is told, and then takes each run as it is. A service
finishes a run that stays incomplete once it has been quiet for long, and again when more of it comes; and it frees what
it keeps of a run when that is finished and has been quiet for very long.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.model.failpoints import reach
from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.output import choose_runs, folder_of, prepare, prepare_folder
from provenance_store.reduction.state import Part, State
from provenance_store.reduction.tracking import RunKey, Tracker
from provenance_store.services.locks import locked
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.reducer.finish import Finisher
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.stream import Stream

_LOCK_SECONDS = 3600.0
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_AN_HOUR = 3600


def run(
    spark: SparkSession,
    settings: Settings,
    *,
    topic: str,
    out: Path,
    only: str | None = None,
    wait: float = 0.0,
    metrics: Metrics | None = None,
    say: Say = lambda _: None,
) -> dict[Path, Account]:
    """Reduce a topic to folders in `out`; the folders with their accounts. Killed and started again, it goes on."""
    KafkaTransport(settings).source(topic).close()  # says plainly where there is no such topic
    names = (topic, str(out.absolute()), only or "")
    with hold_state(settings, *names, say=say) as state:
        reading = _read_into(
            spark, settings, state, ("subscribe", topic), only=only, metrics=metrics or Metrics(), say=say
        )
        tracker, finisher = reading.tracker, reading.finisher
        _read(reading.stream, tracker, only, time.monotonic() + wait, say)
        chosen = choose_runs(tracker.runs(), f"Topic {topic}", only)
        folders = prepare(out, [one.run for one in chosen])
        accounts = {}
        for key in chosen:
            judgement, parts = tracker.judge(key), tracker.parts(key)
            say(f"contracting run {key.run}: {sum(part.edges for part in parts):,} edges")
            accounts[folders[key.run]] = finisher.finish(key.topic, parts, judgement, folders[key.run])
            reach("run finished")
        state.remove()
    return accounts


def serve(
    spark: SparkSession,
    settings: Settings,
    *,
    subscription: tuple[str, str],
    out: Path,
    quiet: float,
    stopped: Callable[[], bool],
    finished: Callable[[Path, Account], None],
    metrics: Metrics | None = None,
    say: Say = lambda _: None,
) -> None:
    """Follow topics until stopped, and finish every run that ends in them."""
    with hold_state(settings, *subscription, str(out.absolute()), say=say) as state:
        reading = _read_into(spark, settings, state, subscription, metrics=metrics or Metrics(), say=say)
        keep = settings.reducer.keep_finished_hours * _SECONDS_AN_HOUR
        watch = _Watch(reading.tracker, reading.finisher, out, quiet, keep, finished, say)
        looked = time.monotonic()

        def look() -> bool:
            nonlocal looked
            if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
                watch.look()
                looked = time.monotonic()
            return stopped()

        reading.stream.follow(look)


class _Reading(NamedTuple):
    """A state that is being read into: what it holds, what it is fed by, and what finishes its runs."""

    tracker: Tracker
    stream: Stream
    finisher: Finisher


def _read_into(
    spark: SparkSession,
    settings: Settings,
    state: State,
    subscription: tuple[str, str],
    *,
    only: str | None = None,
    metrics: Metrics,
    say: Say,
) -> _Reading:
    """Go on from what the state holds."""
    tracker = Tracker(state)
    recorded = state.open()
    for parts in recorded.values():
        tracker.add(parts)

    def keep(batch: int, parts: list[Part]) -> None:
        state.record(batch, parts)
        tracker.add(parts)
        metrics.read(parts)

    done = max(recorded, default=-1)
    stream = Stream(spark, settings, state, subscription, done=done, only=only, keep=keep, lagging=metrics.lag, say=say)
    return _Reading(tracker, stream, Finisher(spark, settings, state, metrics))


@dataclass
class _Watch:
    """Finishes runs as they become complete, or stay quiet, and frees what was kept of them afterwards."""

    tracker: Tracker
    finisher: Finisher
    out: Path
    quiet: float
    keep: float
    finished: Callable[[Path, Account], None]
    say: Say
    _parts_done: dict[RunKey, int] = field(default_factory=dict)

    def look(self) -> None:
        """Finish what can be finished and has not been."""
        over = []
        for key in self.tracker.runs():
            parts = self.tracker.parts(key)
            if self._parts_done.get(key) == len(parts):
                if time.time() - self.tracker.read_at(key) / 1000 >= self.keep:
                    over.append(key)
            elif self.tracker.is_complete(key) or self.tracker.quiet_for(key) >= self.quiet:
                self._finish(key, parts)
                self._parts_done[key] = len(parts)
        if over:
            self.tracker.forget(over)
            for key in over:
                del self._parts_done[key]
            self.say(f"freed what was kept of {len(over):,} finished runs")

    def _finish(self, key: RunKey, parts: Sequence[Part]) -> None:
        judgement = self.tracker.judge(key)
        folder = folder_of(self.out, key.run, alone=False)
        if _is_written(folder, judgement):
            return
        if self.tracker.is_forgotten(key) and _is_poorer(judgement, folder):
            self.finisher.metrics.came_too_late(key.topic, judgement.messages)
            self.say(
                f"run {key.run} was finished, and what was kept of it freed, before {judgement.messages:,} more of its "
                f"messages came. {folder} stays as it is; to have them in it, reduce the run again: "
                f"headwater reduce {key.topic} --run {key.run} --out DIR."
            )
            return
        prepare_folder(folder)
        self.finished(folder, self.finisher.finish(key.topic, parts, judgement, folder))


def _read(stream: Stream, tracker: Tracker, only: str | None, deadline: float, say: Say) -> None:
    """Read until the manifests are satisfied or the time is over; then it is what it is."""

    def is_enough() -> bool:
        asked = [key for key in tracker.runs() if only in {None, key.run}]
        return (bool(asked) and all(map(tracker.is_complete, asked))) or time.monotonic() >= deadline

    stream.catch_up()
    if not is_enough():
        say("waiting for messages that the manifest counts, or for the manifest")
        stream.follow(is_enough)


def _is_poorer(judgement: Judgement, folder: Path) -> bool:
    """Whether the folder holds more than what is left of a run of which some was forgotten."""
    account = _read_account(folder)
    is_whole = judgement.verdict == "complete"
    return account is not None and not is_whole and judgement.generation <= account.generation


def _read_account(folder: Path) -> Account | None:
    try:
        return Account.read(folder)
    except InputError:
        return None


def _is_written(folder: Path, judgement: Judgement) -> bool:
    """Whether the folder holds what would be written now: after a restart, or when only strays have come."""
    account = _read_account(folder)
    if account is None:
        return False
    told = (account.verdict, account.generation, account.edges_in)
    return told == (judgement.verdict, judgement.generation, int(judgement.used["edges"].sum()))


@contextmanager
def hold_state(settings: Settings, *names: str, say: Say) -> Iterator[State]:
    """The state of a reducer that goes by these names, for this process alone."""
    digest = blake2b("\n".join(names).encode(), digest_size=12).hexdigest()
    state = State(settings.home.absolute() / "reducer" / digest)
    with locked(state.folder.with_suffix(".lock"), timeout_seconds=_LOCK_SECONDS, say=say):
        yield state
