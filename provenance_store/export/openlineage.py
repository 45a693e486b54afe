"""Runs as OpenLineage events, in its own client's classes: which datasets fed which, by how many dependencies.

A reduction knows when it was made and not when its job ran, so the events are of those times: the first message read,
and the account written. A run with gaps has ended all the same; its verdict is in a facet of ours. Of a run that never
told its end nobody knows whether it has: its second event is OTHER.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import InputDatasetFacet, JobFacet, OutputDatasetFacet, RunFacet
from openlineage.client.generated.lineage import (
    LineageDatasetEntry,
    LineageDatasetInput,
    LineageEntry,
    LineageJobFacet,
)
from openlineage.client.serde import Serde

from provenance_store.graph.reduced import ReducedGraph, dataset_name
from provenance_store.model.account import ACCOUNT_FILE
from provenance_store.model.message import DECLARED

PRODUCER = f"urn:headwater:{version('headwater')}"
# facets.json, beside this module, is what the URN stands for.
SCHEMA = "urn:headwater:facets:1"


@attr.define
class AccountRunFacet(RunFacet):
    """What the reduction of a run found: the verdict, and what it was made from."""

    run: str
    generation: int
    verdict: str
    messages: int
    edges: int
    missingMessages: int  # noqa: N815 - as OpenLineage spells
    marks: list[str]

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/AccountRunFacet"


@attr.define
class DependenciesInputDatasetFacet(InputDatasetFacet):
    """How many dependencies of outputs are on records of this dataset."""

    edges: int

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/DependenciesInputDatasetFacet"


@attr.define
class DependenciesOutputDatasetFacet(OutputDatasetFacet):
    """How many dependencies records of this dataset have, by the dataset that they are on."""

    edges: int
    inputs: dict[str, int]

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/DependenciesOutputDatasetFacet"


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Under which names the catalogue knows our jobs and our datasets."""

    jobs: str = "headwater"
    datasets: str = "lake"


def run_events(graph: ReducedGraph, namespaces: Namespaces | None = None) -> Iterator[RunEvent]:
    """The events of one run: its start, and its end with all that is known."""
    names = namespaces or Namespaces()
    account = graph.account
    ended = datetime.fromtimestamp((graph.folder / ACCOUNT_FILE).stat().st_mtime, UTC)
    has_ended = account.verdict != "unknown" or DECLARED in account.marks
    # A run that is executed again is another one to OpenLineage, which adds up what it is told of one.
    run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:run:{account.run}#{account.generation}"))
    yield RunEvent(
        eventType=RunState.START,
        eventTime=(ended - timedelta(seconds=account.seconds)).isoformat(),
        run=Run(runId=run, facets={"headwater_account": _account_facet(graph)}),
        job=Job(namespace=names.jobs, name=account.dic),
        producer=PRODUCER,
    )
    feeds = count_feeds(graph.pairs())
    yield RunEvent(
        eventType=RunState.COMPLETE if has_ended else RunState.OTHER,
        eventTime=ended.isoformat(),
        run=Run(runId=run, facets={"headwater_account": _account_facet(graph)}),
        job=Job(namespace=names.jobs, name=account.dic, facets={"lineage": _lineage_facet(feeds, names)}),
        inputs=list(_inputs(feeds, names)),
        outputs=list(_outputs(feeds, names)),
        producer=PRODUCER,
    )


def write_event(event: RunEvent) -> str:
    """An event as OpenLineage's client writes it, on one line."""
    return str(Serde.to_json(event))


def count_feeds(batches: Iterable[tuple[list[str], list[str]]]) -> Counter[tuple[str, str]]:
    """How many edges lead from which dataset into which; ids outside the lake belong to none."""
    feeds: Counter[tuple[str, str]] = Counter()
    for outputs, inputs in batches:
        pairs = zip(map(dataset_name, inputs), map(dataset_name, outputs), strict=True)
        feeds.update((source, target) for source, target in pairs if source is not None and target is not None)
    return feeds


def _account_facet(graph: ReducedGraph) -> AccountRunFacet:
    account = graph.account
    return AccountRunFacet(
        run=account.run,
        generation=account.generation,
        verdict=account.verdict,
        messages=account.messages,
        edges=account.edges_out,
        missingMessages=sum(map(len, account.missing.values())),
        marks=account.marks,
        producer=PRODUCER,
    )


def _lineage_facet(feeds: Counter[tuple[str, str]], names: Namespaces) -> JobFacet:
    sources: dict[str, list[str]] = {}
    for source, target in sorted(feeds):
        sources.setdefault(target, []).append(source)
    entries: list[LineageEntry] = [
        LineageDatasetEntry(
            namespace=names.datasets,
            name=target,
            type="DATASET",
            inputs=[LineageDatasetInput(namespace=names.datasets, name=one, type="DATASET") for one in of],
        )
        for target, of in sources.items()
    ]
    return LineageJobFacet(entries=entries, producer=PRODUCER)


def _inputs(feeds: Counter[tuple[str, str]], names: Namespaces) -> Iterator[InputDataset]:
    for name in sorted({source for source, _ in feeds}):
        edges = sum(count for (source, _), count in feeds.items() if source == name)
        facet = DependenciesInputDatasetFacet(edges=edges, producer=PRODUCER)
        yield InputDataset(namespace=names.datasets, name=name, inputFacets={"headwater_dependencies": facet})


def _outputs(feeds: Counter[tuple[str, str]], names: Namespaces) -> Iterator[OutputDataset]:
    for name in sorted({target for _, target in feeds}):
        inputs = {source: count for (source, target), count in sorted(feeds.items()) if target == name}
        facet = DependenciesOutputDatasetFacet(edges=sum(inputs.values()), inputs=inputs, producer=PRODUCER)
        yield OutputDataset(namespace=names.datasets, name=name, outputFacets={"headwater_dependencies": facet})
