"""Stream jobs as tasks: each runs one for some time, and the next takes it up where it was."""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from airflow.sdk import Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators.base import HeadwaterOperator
from provenance_store.errors import InputError, JobError
from provenance_store.model.files import write_whole

_EXAMPLE_EVENTS = 2_000


class _ForAWhile(HeadwaterOperator):
    """A task that goes on for at most so many seconds, and ends cleanly where it is taken away before."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "seconds")

    def __init__(self, *, seconds: float = 600.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seconds = seconds
        # Made when the task runs: Airflow copies operators, and an event cannot be copied.
        self._over: threading.Event | None = None
        self._is_killed = False

    def on_kill(self) -> None:
        """Airflow takes the task away: what it runs is asked to end."""
        self._is_killed = True
        if self._over is not None:
            self._over.set()

    @contextmanager
    def for_a_while(self, what: str) -> Iterator[threading.Event]:
        """An event that is set when the time is over. JobError where the task was taken away, so that it is retried."""
        self._over = over = threading.Event()
        clock = threading.Timer(float(self.seconds), over.set)
        clock.daemon = True
        clock.start()
        try:
            yield over
        finally:
            clock.cancel()
        if self._is_killed:
            raise JobError(f"{what} was asked to end with its task. Where it was it is taken up again.")


class HeadwaterStreamOperator(_ForAWhile):
    """Keeps a stream query running with its live provenance: `headwater streams run QUERY --run RUN --follow`.

    A task runs it for at most `seconds`; the next one with the same `run_id` goes on from its checkpoint, so a retry is
    harmless, and two tasks at once are refused. Results are published in segments of `period_ms` of event time. Where
    `query` is empty an example of `headwater streams examples` is run, on events that are generated into the lake.
    What is told of the run is returned.
    """

    template_fields: Sequence[str] = (*_ForAWhile.template_fields, "query", "run_id", "example")

    def __init__(
        self,
        *,
        run_id: str,
        query: str | None = None,
        example: str = "item-monitor",
        live: Literal["exact", "reach"] | None = "exact",
        period_ms: int = 60_000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.run_id = run_id
        self.query = query
        self.example = example
        self.live = live
        self.period_ms = period_ms

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Run it until its time is over."""
        query = Path(self.query) if self.query else self._write_example(hook)
        if not query.is_file():
            raise InputError(f"There is no query at {query}: give the path of its description on the workers.")
        command = [sys.executable, "-m", "spark_apps.streams", f"--query={query}", f"--run={self.run_id}", "--follow"]
        command += [f"--period={self.period_ms}"] + [f"--live={self.live}"] * (self.live is not None)
        what = f"The stream job {self.run_id}"
        with self.for_a_while(what) as over:
            began = time.monotonic()
            hook.follow_application(command, what, over)
            if not over.is_set():
                raise JobError(f"{what} ended by itself after {time.monotonic() - began:.0f} s; its log says why.")
        return self._tell(hook)

    def _write_example(self, hook: HeadwaterHook) -> Path:
        from provenance_store.streams.examples import find_example
        from provenance_store.streams.examples.writing import write_events

        chosen = find_example(self.example)
        events = write_events(chosen, hook.settings.lake, count=_EXAMPLE_EVENTS, seed=1)
        self.log.info("No query is named: the example %s is run on %s.", chosen.name, events)
        path = hook.settings.home.absolute() / "stream_queries" / f"{chosen.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, chosen.query.to_json())
        return path

    def _tell(self, hook: HeadwaterHook) -> dict[str, Any]:
        from provenance_store.streams.service import jobs

        found = [job for job in jobs(hook.settings.home, hook.settings.lake) if job.run == self.run_id]
        return msgspec.to_builtins(found[0]) if found else {"run": self.run_id}


class FollowLiveOperator(_ForAWhile):
    """Takes what running stream queries tell into the lake graph, for at most `seconds`; several share the work."""

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Follow every topic of live provenance until the time is over; what was taken in."""
        from provenance_store.graph.following import follow_live

        with self.for_a_while("What follows live provenance") as over, hook.get_conn() as graph:
            done = follow_live(hook.settings, graph, stopped=over.is_set)
        self.log.info("Took in %s.", done)
        told: dict[str, Any] = msgspec.to_builtins(done)
        return told
