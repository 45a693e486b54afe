"""Reduce a run while it flows: the reducer goes on beside the DIC, and the task waits without a worker."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of_graph
from headwater_airflow.operators.base import HeadwaterOperator, failing_plainly
from headwater_airflow.runs import given_up, run_in
from headwater_airflow.triggers.reduced import RunReducedTrigger, judge
from provenance_store.errors import InputError
from provenance_store.lake.layout import version_of
from provenance_store.model.account import ACCOUNT_FILE, Account
from provenance_store.services import beside
from provenance_store.transport.wiring import make_topics, topic_of

_SPARE = timedelta(minutes=10)
_LATER = timedelta(seconds=1)


class ReduceRunOperator(HeadwaterOperator):
    """Reduce one run of a DIC, begun in parallel with it. The account of the reduced graph is returned.

    `outputs` names the datasets that the run writes: the graph is only taken when it is of the execution that wrote
    them. Tried again, a reducer that goes on is left alone, one that ended is started where it was, and a graph that is
    there is taken. `timeout_seconds` is how long the run may take until it is complete.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "dic", "run_id", "outputs")

    def __init__(
        self,
        *,
        dic: str,
        outputs: Sequence[str] = (),
        run_id: str | None = None,
        timeout_seconds: float = 3600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dic = dic
        self.outputs = outputs
        self.run_id = run_id
        self.timeout_seconds = timeout_seconds
        self._folder: Path | None = None

    def run(self, context: Context, hook: HeadwaterHook) -> Any:
        """Start the reducer where the run is not reduced yet, and wait elsewhere."""
        run = self.run_id or run_in(context, self.dic)
        folder = hook.reduced_folder(run)
        if (folder / ACCOUNT_FILE).exists() and "reduced" in (judge(folder, self._versions(hook, run)) or {}):
            account = Account.read(folder)
            if account.verdict == "complete":
                self.log.info("Run %s is reduced already.", run)
                return self._tell(folder)
        if _is_alone() and not all(path.is_dir() for path in self._versions(hook, run)):
            if (why := given_up(hook.run_folder(run))) is not None:
                raise InputError(why)
            raise AirflowRescheduleException(datetime.now(UTC) + _LATER)
        return self._begin(hook, run)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Take the graph; begin again where the run was executed again after it was reduced."""
        hook = HeadwaterHook(self.headwater_conn_id)
        with failing_plainly():
            run = self.run_id or run_in(context, self.dic)
            if "stale" in event:
                self.log.info("Run %s was executed again after it was reduced: it is reduced again.", run)
                self._begin(hook, run)
            beside.Outcome(error=event.get("error"), kind=event.get("kind", "JobError")).check()
            return self._tell(Path(event["reduced"]))

    def _begin(self, hook: HeadwaterHook, run: str) -> NoReturn:
        topic = topic_of(self.dic)
        # The reducer may be the first to come: then there is no topic yet. And a broker that is away is told here.
        make_topics(hook.settings, topic, required=True)
        folder, word = hook.reduced_folder(run), hook.run_folder(run) / "reducer"
        command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topic}", f"--out={folder}", f"--run={run}"]
        command.append(f"--wait={self.timeout_seconds}")
        beside.start(command, f"The reducer of run {run}", word, hook.environment())
        self.log.info("The reducer of run %s goes on beside it; it logs to %s.", run, word / "log")
        trigger = RunReducedTrigger(
            folder=str(folder), beside=str(word), versions=[str(path) for path in self._versions(hook, run)]
        )
        timeout = timedelta(seconds=self.timeout_seconds) + _SPARE
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timeout)
        raise AssertionError("a deferred task does not return here")  # pragma: no cover

    def _versions(self, hook: HeadwaterHook, run: str) -> list[Path]:
        return [version_of(hook.settings.lake, dataset, run).path for dataset in self.outputs]

    def _tell(self, folder: Path) -> dict[str, Any]:
        self._folder = folder
        account = Account.read(folder)
        self.log.info("Run %s: %s, %s edges.", account.run, account.verdict, f"{account.edges_out:,}")
        told: dict[str, Any] = msgspec.to_builtins(account)
        # What is missing can be long; how much is enough here, and the folder tells all.
        told["missing"] = sum(map(len, account.missing.values()))
        return {**told, "folder": str(folder)}

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """The datasets between which the graph leads, by how many dependencies."""
        return lineage_of_graph(self._folder or Path())


def _is_alone() -> bool:
    """Whether tasks are run one after the other in any order, as `airflow dags test` does: it would wait for ever."""
    return isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), InProcessSupervisorComms)
