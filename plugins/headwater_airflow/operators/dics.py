"""Run instrumented DICs: on Hadoop, and on Spark with whatever master."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from airflow.sdk import BaseHook, Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of
from headwater_airflow.operators.base import HeadwaterOperator
from headwater_airflow.runs import given_up_at_last, run_in, versions_that_started


class _DicOperator(HeadwaterOperator):
    """One run of one DIC. Its id follows from the DAG run: tried again, a finished run tells what it did before.

    `inputs` are `dataset/version`; of a dataset without a version, the one whose asset event started the DAG run, or
    else the newest. The run's result is returned: what it read and wrote, and how many messages it sent.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "dic", "inputs", "run_id", "policy")

    def __init__(
        self,
        *,
        dic: str,
        inputs: Sequence[str],
        run_id: str | None = None,
        policy: Literal["fail", "degrade"] = "fail",
        **kwargs: Any,
    ) -> None:
        # Each part of the result can be given to another task: `count.output["outputs"]`.
        super().__init__(**{"multiple_outputs": True, **kwargs})
        self.dic = dic
        self.inputs = inputs
        self.run_id = run_id
        self.policy = policy
        self._result: dict[str, Any] = {}

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Run it, and tell each outlet which version is new."""
        run = self.run_id or run_in(context, self.dic)
        started = versions_that_started(context)
        with given_up_at_last(context, hook.run_folder(run)):
            inputs = hook.pin(run, [started.get(one, one) for one in self.inputs])
            arguments = [f"--run={run}", f"--policy={self.policy}", *(f"--input={one}" for one in inputs)]
            self._result = hook.run_dic(self.dic, arguments, self.more_environment(hook))
        self._result.pop("paths", None)
        self.tell_outlets(context, self._result["outputs"])
        return self._result

    def more_environment(self, hook: HeadwaterHook) -> dict[str, str]:
        """Settings that differ from the connection's."""
        return {}

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """What it read and wrote."""
        return lineage_of(self._result.get("inputs", ()), self._result.get("outputs", ()))


class RunHadoopDicOperator(_DicOperator):
    """Run an instrumented Hadoop Streaming job, on the Hadoop that the settings name."""

    def __init__(self, *, framework: Literal["local", "yarn"] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.framework = framework

    def more_environment(self, hook: HeadwaterHook) -> dict[str, str]:
        """Another framework, where one is named."""
        if self.framework is None:
            return {}
        told = hook.settings.hadoop.model_dump(mode="json") | {"framework": self.framework}
        return {"HEADWATER_HADOOP": json.dumps(told)}


class RunSparkDicOperator(_DicOperator):
    """Run an instrumented Spark job, in client mode on any master, started by Spark's own spark-submit.

    The master is that of the settings, or of an Airflow connection of type `spark`; `conf` goes over both.
    """

    template_fields: Sequence[str] = (*_DicOperator.template_fields, "spark_conn_id", "conf")
    template_fields_renderers = {"conf": "json"}  # noqa: RUF012 - as Airflow's operators have it

    def __init__(self, *, spark_conn_id: str | None = None, conf: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spark_conn_id = spark_conn_id
        self.conf = conf or {}

    def more_environment(self, hook: HeadwaterHook) -> dict[str, str]:
        """Spark's settings, with what the connection and the task say."""
        told = hook.settings.spark.model_dump(mode="json")
        if self.spark_conn_id is not None:
            told["master"] = _master(self.spark_conn_id)
        return {"HEADWATER_SPARK": json.dumps(told | {"conf": {**told["conf"], **self.conf}})}


def _master(spark_conn_id: str) -> str:
    connection = BaseHook.get_connection(spark_conn_id)
    host = connection.host or "local[2]"
    return f"{host}:{connection.port}" if connection.port else host
