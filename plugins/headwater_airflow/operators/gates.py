"""Gates: a task that fails where data or a graph is not as it should be, so that nothing after it runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from airflow.sdk import Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of
from headwater_airflow.operators.base import HeadwaterOperator
from provenance_store.health.finding import refuse


class GateOperator(HeadwaterOperator):
    """Hold versions to the Great Expectations suites that the catalogue names for their datasets.

    `versions` are `dataset/version`, or `dataset` for the newest. Sentences name expectations and columns, no values.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "versions")

    def __init__(self, *, versions: str | Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.versions = versions
        self._checked: list[str] = []

    def run(self, context: Context, hook: HeadwaterHook) -> list[str]:
        """Check them all, then tell all that is wrong."""
        from provenance_store.health.datasets import check_version

        versions = [self.versions] if isinstance(self.versions, str) else list(self.versions)
        faults = [fault for version in versions for fault in check_version(hook.settings, version)]
        self._checked = versions
        refuse(f"The gate of {', '.join(versions)}", faults)
        return versions

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """What it looked at."""
        return lineage_of(self._checked)


class GraphGateOperator(HeadwaterOperator):
    """Hold a reduced graph to what the job itself told, before it is merged.

    It must be complete, of the execution that wrote the outputs, and speak of records that are there and no others.
    `job` is what the task that ran the DIC returned. `suite` names a suite of Great Expectations over the columns
    `output` and `input`, in place of ours.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "job", "suite")

    def __init__(self, *, job: Any, suite: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.suite = suite

    def run(self, context: Context, hook: HeadwaterHook) -> str:
        """Check it."""
        from provenance_store.health.graphs import SUITE, JobsOwn, check_graph

        job = msgspec.convert(self.job, JobsOwn)
        folder = hook.reduced_folder(job.run)
        suite = Path(self.suite) if self.suite else SUITE
        refuse(f"The graph of run {job.run}", check_graph(hook.settings, folder, job, suite))
        return str(folder)
