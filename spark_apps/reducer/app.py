"""The reducer as an application: a job that ends with its runs, or a service that follows topics while it lives.

Both read the stream into a state on disk, from where it was left, and finish a run when all that its manifest counts
is there. A job reads what there is, waits for as long as it is told, and then takes each run as it is. A service
finishes a run that stays incomplete once it has been quiet for long, and again when more of it comes.
"""

import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.reduction.completeness import Judgement
from provenance_store.reduction.failpoints import reach
from provenance_store.reduction.output import choose_runs, folder_of, prepare, prepare_folder
from provenance_store.reduction.state import State
from provenance_store.reduction.tracking import RunKey, Tracker
from provenance_store.services.locks import locked
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.reducer.finish import Finisher
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.naming import read_names_again
from spark_apps.reducer.stream import Stream

_LOCK_SECONDS = 3600.0
_SECONDS_BETWEEN_LOOKS = 0.5


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
    state = _state(settings, topic, str(out.absolute()), only or "")
    with locked(state.folder.with_suffix(".lock"), timeout_seconds=_LOCK_SECONDS, say=say):
        tracker = Tracker(state)
        for parts in state.open().values():
            tracker.add(parts)
        counted = metrics or Metrics()
        stream = Stream(
            spark, settings, state, ("subscribe", topic), only=only, heard=tracker.add, metrics=counted, say=say
        )
        _read(stream, tracker, only, time.monotonic() + wait, say)
        chosen = choose_runs(tracker.runs(), f"Topic {topic}", only)
        folders = prepare(out, [one.run for one in chosen])
        finisher = Finisher(spark, state, settings.reducer.edges_here)
        accounts = {}
        for key in chosen:
            judgement, parts = tracker.judge(key), tracker.parts(key)
            say(f"contracting run {judgement.run}: {sum(part.edges for part in parts):,} edges")
            folder = folders[judgement.run]
            more = read_names_again(spark, settings, state, topic, judgement.run) if judgement.lacks_names else []
            accounts[folder] = finisher.finish(parts, judgement, folder, more)
            counted.finished(accounts[folder])
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
    state = _state(settings, *subscription, str(out.absolute()))
    with locked(state.folder.with_suffix(".lock"), timeout_seconds=_LOCK_SECONDS, say=say):
        tracker = Tracker(state)
        for parts in state.open().values():
            tracker.add(parts)
        counted = metrics or Metrics()
        stream = Stream(spark, settings, state, subscription, heard=tracker.add, metrics=counted, say=say)

        def written(folder: Path, account: Account) -> None:
            counted.finished(account)
            finished(folder, account)

        watch = _Watch(spark, settings, state=state, tracker=tracker, out=out, quiet=quiet, finished=finished)
        looked = time.monotonic()

        def look() -> bool:
            nonlocal looked
            if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
                watch.look()
                looked = time.monotonic()
            return stopped()

        stream.follow(look)


class _Watch:
    """Finishes runs as they become complete, or stay quiet."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        *,
        state: State,
        tracker: Tracker,
        out: Path,
        quiet: float,
        finished: Callable[[Path, Account], None],
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._state = state
        self._tracker = tracker
        self._out = out
        self._quiet = quiet
        self._finished = finished
        self._parts_done: dict[RunKey, int] = {}

    def look(self) -> None:
        """Finish what can be finished and has not been."""
        for key in self._tracker.runs():
            parts = self._tracker.parts(key)
            done = self._parts_done.get(key)
            if done == len(parts):
                continue
            if not self._tracker.is_complete(key) and self._tracker.quiet_for(key) < self._quiet:
                continue
            self._finish(key)
            self._parts_done[key] = len(parts)

    def _finish(self, key: RunKey) -> None:
        judgement = self._tracker.judge(key)
        folder = folder_of(self._out, key.run, alone=False)
        if _is_written(folder, judgement):
            return
        more = []
        if judgement.lacks_names:
            more = read_names_again(self._spark, self._settings, self._state, key.topic, key.run)
        prepare_folder(folder)
        finisher = Finisher(self._spark, self._state, self._settings.reducer.edges_here)
        account = finisher.finish(self._tracker.parts(key), judgement, folder, more)
        self._finished(folder, account)


def _read(stream: Stream, tracker: Tracker, only: str | None, deadline: float, say: Say) -> None:
    """Read until the manifests are satisfied or the time is over; then it is what it is."""

    def is_enough() -> bool:
        asked = [key for key in tracker.runs() if only in {None, key.run}]
        return (bool(asked) and all(map(tracker.is_complete, asked))) or time.monotonic() >= deadline

    stream.catch_up()
    if not is_enough():
        say("waiting for messages that the manifest counts, or for the manifest")
        stream.follow(is_enough)


def _is_written(folder: Path, judgement: Judgement) -> bool:
    """Whether the folder holds what would be written now: after a restart, or when only strays have come."""
    try:
        account = Account.read(folder)
    except InputError:
        return False
    told = (account.verdict, account.generation, account.edges_in)
    return told == (judgement.verdict, judgement.generation, int(judgement.used["edges"].sum()))


def _state(settings: Settings, *names: str) -> State:
    digest = blake2b("\n".join(names).encode(), digest_size=12).hexdigest()
    return State(settings.home.absolute() / "reducer" / digest)
