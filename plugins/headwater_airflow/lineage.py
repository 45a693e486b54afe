"""What tasks tell OpenLineage: the datasets of the lake that they read and wrote, under the names of our own export."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from provenance_store.errors import InputError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def lineage_of(inputs: Iterable[str] = (), outputs: Iterable[str] = ()) -> "OperatorLineage":
    """Of `dataset` or `dataset/version` references."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    from provenance_store.export.openlineage import Namespaces

    namespace = Namespaces().datasets
    return OperatorLineage(
        inputs=[InputDataset(namespace=namespace, name=name) for name in _datasets(inputs)],
        outputs=[OutputDataset(namespace=namespace, name=name) for name in _datasets(outputs)],
    )


def lineage_of_graph(folder: Path) -> "OperatorLineage":
    """Of a reduced graph: as its export tells it, with the counts of dependencies and the account."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    from provenance_store.export.openlineage import run_events
    from provenance_store.graph.reduced import ReducedGraph

    try:
        *_, end = run_events(ReducedGraph.open(folder))
    except InputError:  # a task that failed may have left no graph
        return OperatorLineage()
    return OperatorLineage(inputs=end.inputs, outputs=end.outputs, run_facets=end.run.facets, job_facets=end.job.facets)


def _datasets(references: Iterable[str]) -> list[str]:
    return sorted({reference.partition("/")[0] for reference in references})
