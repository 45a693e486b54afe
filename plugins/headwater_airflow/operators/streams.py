"""Stream jobs as tasks: what is to go on is started beside Airflow, and watched without a worker."""

import sys
import time
from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from airflow.sdk import Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators.base import HeadwaterOperator, failing_plainly
from headwater_airflow.triggers.goes_on import GoesOnTrigger
from provenance_store.errors import InputError
from provenance_store.model.files import write_whole
from provenance_store.services import beside

_EXAMPLE_EVENTS = 2_000
_SPARE = timedelta(minutes=10)


class _GoesOn(HeadwaterOperator):
    """Has an application go on beside: it is started where it does not, and watched for so many seconds.

    It outlives the task, and the next one finds it going on. Where it has ended the task fails, so that its retry
    starts it again; where someone takes the task away, it is asked to end.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "seconds")

    def __init__(self, *, seconds: float = 300.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seconds = seconds

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Start it where it does not go on, and wait elsewhere."""
        what, word = self.what(), self.word(hook)
        beside.start(self.command(hook), what, word, hook.environment())
        self.log.info("%s goes on beside Airflow; it logs to %s.", what, word / "log")
        seconds = float(self.seconds)
        trigger = GoesOnTrigger(beside=str(word), until=time.time() + seconds)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=seconds) + _SPARE)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """It goes on; or it has ended, and is to be started again."""
        with failing_plainly():
            beside.Outcome(error=event.get("error"), kind=event.get("kind", "JobError")).check()
            return self.tell(HeadwaterHook(self.headwater_conn_id))

    @abstractmethod
    def what(self) -> str:
        """How it is called in a sentence."""

    @abstractmethod
    def word(self, hook: HeadwaterHook) -> Path:
        """The folder that it leaves word in."""

    @abstractmethod
    def command(self, hook: HeadwaterHook) -> list[str]:
        """How it is started."""

    def tell(self, hook: HeadwaterHook) -> Any:
        """What the task returns while it goes on."""


class HeadwaterStreamOperator(_GoesOn):
    """Keeps a stream query running with its live provenance: `headwater streams run QUERY --run RUN --follow`.

    Started again with the same `run_id` it goes on from its checkpoint. Results are published in segments of
    `period_ms` of event time. Where `query` is empty an example of `headwater streams examples` is run, on events that
    are generated into the lake. What is told of the run is returned.
    """

    template_fields: Sequence[str] = (*_GoesOn.template_fields, "query", "run_id", "example")

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

    def what(self) -> str:
        """The job of a run."""
        return f"The stream job {self.run_id}"

    def word(self, hook: HeadwaterHook) -> Path:
        """Where `headwater streams stop` finds it."""
        return beside.stream_folder(hook.settings.home, self.run_id)

    def command(self, hook: HeadwaterHook) -> list[str]:
        """The query, or the example."""
        query = Path(self.query) if self.query else self._write_example(hook)
        if not query.is_file():
            raise InputError(f"There is no query at {query}: give the path of its description on the workers.")
        command = [sys.executable, "-m", "spark_apps.streams", f"--query={query}", f"--run={self.run_id}", "--follow"]
        return [*command, f"--period={self.period_ms}", *([f"--live={self.live}"] if self.live else [])]

    def tell(self, hook: HeadwaterHook) -> dict[str, Any]:
        """How far the run has come."""
        from provenance_store.streams.service import jobs

        found = [job for job in jobs(hook.settings.home, hook.settings.lake) if job.run == self.run_id]
        return msgspec.to_builtins(found[0]) if found else {"run": self.run_id}

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


class FollowLiveOperator(_GoesOn):
    """Keeps what running stream queries tell coming into the lake graph: `headwater streams follow-live`."""

    def what(self) -> str:
        """Of all queries."""
        return "What follows live provenance"

    def word(self, hook: HeadwaterHook) -> Path:
        """One for the whole lake."""
        return beside.following_folder(hook.settings.home)

    def command(self, hook: HeadwaterHook) -> list[str]:
        """Every topic of live provenance."""
        return [sys.executable, "-c", "from provenance_store.cli.main import main; main()", "streams", "follow-live"]
