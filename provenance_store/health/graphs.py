"""The gate before a merge: whether a reduced graph is complete, speaks of records that are there, and adds up."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.graph.reduced import EDGES, ReducedGraph
from provenance_store.health.finding import Fault
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.contents import count_records
from provenance_store.lake.layout import Version, resolve
from provenance_store.model.ids import version_prefix
from provenance_store.model.keys import KeyRing
from provenance_store.purge.expectations import check_table
from provenance_store.purge.standing import Lake
from provenance_store.settings import Settings

# What is expected of every graph; a task may name another suite.
SUITE = Path(__file__).with_name("reduced_graph.json")
_NAMED = 3


class JobsOwn(msgspec.Struct, frozen=True, kw_only=True):
    """What the job itself told of its run: the part of its result that a graph is held to."""

    run: str
    dic: str
    inputs: list[str]
    outputs: list[str]
    generation: int
    messages: int


def check_graph(settings: Settings, folder: Path, job: JobsOwn, suite: Path = SUITE) -> list[Fault]:
    """All that keeps a reduced graph from being merged; nothing, where it may be."""
    graph = ReducedGraph.open(folder)
    return [*_account_faults(graph, job), *_record_faults(settings, graph, job), *_suite_faults(graph, suite)]


def _suite_faults(graph: ReducedGraph, suite: Path) -> Iterator[Fault]:
    table = pa.concat_tables([EDGES.empty_table(), *(_read(file) for file in graph.files)])
    for sentence in check_table(suite, graph.account.run, table).failed:
        yield Fault("suite", f"{sentence} is not met ({suite.name}).")


def _read(file: Path) -> pa.Table:
    return pq.read_table(file, columns=EDGES.names, partitioning=None).cast(EDGES)


def _account_faults(graph: ReducedGraph, job: JobsOwn) -> Iterator[Fault]:
    account = graph.account
    if (account.run, account.dic) != (job.run, job.dic):
        yield Fault("run", f"the graph is of run {account.run} of {account.dic}, not of {job.run} of {job.dic}.")
        return
    if account.verdict != "complete":
        missing = sum(map(len, account.missing.values()))
        yield Fault("verdict", f"provenance is {account.verdict}, {missing:,} messages are known to be missing.")
    if account.generation != job.generation:
        yield Fault(
            "generation",
            f"the graph is of execution {account.generation} of the run, and the job ended with {job.generation}: "
            "reduce the run again.",
        )
    # The account counts all that were read; of these, what counted must be what the job's writers say they sent.
    counted = account.messages - account.duplicates - account.discarded - account.rejected
    if account.verdict == "complete" and counted != job.messages:
        yield Fault("messages", f"the job sent {job.messages:,} messages, and {counted:,} are in the graph.")
    if account.unmade:
        yield Fault("unmade", f"{account.unmade:,} items were used although nobody told what made them.")


def _record_faults(settings: Settings, graph: ReducedGraph, job: JobsOwn) -> Iterator[Fault]:
    lake = Lake(settings.lake, Catalogue.load(settings.lake), KeyRing(settings))
    for column, references in (("output", job.outputs), ("input", job.inputs)):
        ids = pl.concat([pl.scan_parquet(file, glob=False).select(column) for file in graph.files])
        distinct = ids.unique().collect()[column].alias("id")
        versions = [resolve(settings.lake, reference) for reference in references]
        prefixes = [version_prefix(one.dataset, one.name) for one in versions]
        within = distinct.str.extract(r"^(lake:[^/#]+/[^/#]+)").is_in(prefixes).fill_null(value=False)
        if strangers := distinct.filter(~within).to_list():
            told = ", ".join(references)
            yield Fault(f"{column}s", f"{_some(strangers)} not of {told}, which the job says that it {_VERBS[column]}.")
        found = lake.stand(distinct.filter(within), exactly=True)
        if dangling := sorted([*found.missing["id"], *found.gone["id"], *found.foreign]):
            yield Fault(f"{column}s", f"{_some(dangling)} not in the lake: such ids would dangle.")
        yield from _count_faults(lake, column, versions, len(distinct))


_VERBS = {"output": "wrote", "input": "read"}


def _count_faults(lake: Lake, column: str, versions: Sequence[Version], distinct: int) -> Iterator[Fault]:
    """No more records than there are; and where the job wrote some, at least one of them came from somewhere."""
    there = sum(count_records(one, lake.catalogue.of(one.dataset)) for one in versions)
    names = ", ".join(one.reference for one in versions)
    if distinct > there:
        yield Fault(f"{column}s", f"the graph knows {distinct:,} records of {names}, and there are {there:,}.")
    if column == "output" and there and not distinct:
        yield Fault(f"{column}s", f"the job wrote {there:,} records into {names}, and the graph knows of none of them.")


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED:,} more are" if len(ids) > _NAMED else " is" if len(ids) == 1 else " are"
    return ", ".join(ids[:_NAMED]) + more
