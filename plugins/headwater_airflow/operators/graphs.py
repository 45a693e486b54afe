"""The lake graph: merge a run into it, and ask it about records."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from airflow.sdk import Asset, Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.lineage import lineage_of_graph
from headwater_airflow.operators.base import HeadwaterOperator
from headwater_airflow.runs import run_in


class MergeOperator(HeadwaterOperator):
    """Merge the reduced graph of a run of a DIC into the lake graph; again changes nothing."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "dic", "run_id")

    def __init__(self, *, dic: str, run_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dic = dic
        self.run_id = run_id
        self._folder: Path | None = None

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Merge it."""
        run = self.run_id or run_in(context, self.dic)
        self._folder = hook.reduced_folder(run)
        with hook.get_conn() as graph:
            merged = graph.merge(self._folder)
        told = "merged" if merged.changed else "there already"
        self.log.info("Run %s, generation %s: %s edges %s.", merged.run, merged.generation, f"{merged.edges:,}", told)
        # A run names the versions that it writes after itself.
        self.tell_outlets(context, [f"{outlet.name}/{run}" for outlet in self.outlets if isinstance(outlet, Asset)])
        result: dict[str, Any] = msgspec.to_builtins(merged)
        return result

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """The datasets between which the graph leads, by how many dependencies."""
        return lineage_of_graph(self._folder or Path())


class TraceOperator(HeadwaterOperator):
    """Ask what records were made from, or what was made from them. The answer in numbers is returned.

    With `out`, all of it is written there as JSON.
    """

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "ids", "to", "out")

    def __init__(
        self,
        *,
        ids: Sequence[str],
        direction: Literal["backward", "forward"] = "backward",
        to: str | None = None,
        depth: int | None = None,
        ends_only: bool = False,
        out: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ids = ids
        self.direction = direction
        self.to = to
        self.depth = depth
        self.ends_only = ends_only
        self.out = out

    def run(self, context: Context, hook: HeadwaterHook) -> dict[str, Any]:
        """Ask, in the name of whoever started the DAG run."""
        from provenance_store.graph.queries import settled
        from provenance_store.graph.trace import Question

        ids = tuple(dict.fromkeys([self.ids] if isinstance(self.ids, str) else self.ids))
        question = Question(ids, self.direction, self.depth, self.to, self.ends_only)
        with hook.lake_graph(who=context["dag_run"].triggering_user_name) as graph:
            summary, written = settled(lambda: self._answer(graph.trace(question)))
        self.log.info("Asked %s from %s records.", self.direction, f"{len(ids):,}")
        return {**summary, "out": written}

    def _answer(self, trace: Any) -> tuple[dict[str, Any], str | None]:
        if self.out is not None:
            path = Path(self.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                trace.write_json(file)
        return msgspec.to_builtins(trace.summary()), self.out
