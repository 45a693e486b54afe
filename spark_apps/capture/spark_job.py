"""What a Spark DIC is: a function over captured inputs, and the datasets that it reads and writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.services.service import Say
from provenance_store.settings import Settings
from spark_apps.capture.run import RunResult
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.capture.writer import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """A DIC for Spark.

    `run` is called with the captured run and its inputs, `dataset` or `dataset/version`, in the order of `inputs`.
    """

    dic: str
    run: Callable[[SparkRun, list[str]], None]
    inputs: Sequence[str]
    outputs: Sequence[str]

    def execute(
        self,
        settings: Settings,
        session: SparkSession,
        *,
        run: str,
        inputs: Sequence[str] | None = None,
        policy: Policy = "fail",
        say: Say = lambda _: None,
    ) -> RunResult:
        """Run it under capture, on the newest versions where no inputs are named."""
        if inputs and len(inputs) != len(self.inputs):
            raise InputError(f"{self.dic} reads {len(self.inputs)} inputs, in the order {', '.join(self.inputs)}.")
        return run_spark(
            self.dic,
            lambda captured: self.run(captured, list(inputs or self.inputs)),
            settings=settings,
            session=session,
            run=run,
            outputs=self.outputs,
            policy=policy,
            say=say,
        )
