"""Bring data into the lake: here the synthetic lakes, as an example of an ingest that is a version of its own."""

from collections.abc import Sequence
from typing import Any, Literal

from airflow.sdk import Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of
from headwater_airflow.operators.base import HeadwaterOperator
from headwater_airflow.runs import run_in


class GenerateOperator(HeadwaterOperator):
    """Write a synthetic lake as a new version, named after the DAG run; its reference is returned."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "count", "seed")

    def __init__(self, *, what: Literal["tweets", "orders"], count: int | str, seed: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.what = what
        self.count = count
        self.seed = seed
        self._reference = ""

    def run(self, context: Context, hook: HeadwaterHook) -> str:
        """Make it; tried again, what is there stays."""
        from provenance_store.lake import orders, tweets

        version = run_in(context, self.what)
        make = {"tweets": tweets.generate, "orders": orders.generate}[self.what]
        made = make(hook.settings.lake, count=int(self.count), seed=int(self.seed), version=version)
        self._reference = made.reference
        self.tell_outlets(context, [made.reference])
        return made.reference

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """What it wrote."""
        return lineage_of(outputs=[self._reference] if self._reference else [])
