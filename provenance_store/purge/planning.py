"""Makes the plan of a purge: reads the lake and the lake graph, and changes neither."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
import polars as pl
import pyarrow as pa

from provenance_store.errors import InputError, TransportError
from provenance_store.graph.consequences import KnownRun
from provenance_store.graph.liveness import LiveCount
from provenance_store.model.account import worst_verdict
from provenance_store.model.keys import KeyRing
from provenance_store.model.message import STREAM
from provenance_store.purge import folders, reaching, state
from provenance_store.purge.doubts import find_doubts
from provenance_store.purge.page import write_page
from provenance_store.purge.plan import INPUTS_SCHEMA, Plan, Step, StoredPlan, Topic, write_plan, write_tables
from provenance_store.purge.reaching import reach
from provenance_store.purge.selection import check_who, open_selection, read_ids
from provenance_store.purge.standing import PLACE, Lake
from provenance_store.purge.steps import Steps
from provenance_store.purge.streams import StreamRuns
from provenance_store.settings import Settings
from provenance_store.streams.live_messages import topic_of as live_topic_of
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.wiring import topic_of

VALID = timedelta(days=7)
_NO_INPUTS = pl.DataFrame(pl.from_arrow(INPUTS_SCHEMA.empty_table()))
_OF = {"dataset": "of_dataset", "version": "of_version"}
# Messages that cannot be read are put there.
_REJECTED = ".rejected"


class Graph(reaching.Graph, state.Runs, Protocol):
    """What has to be known of the lake graph; `LakeGraph` does."""

    def inputs_of(self, run: str, outputs: Sequence[str]) -> pa.ChunkedArray:
        """The ids of what one run made these outputs from."""

    def count_liveness(self, ids: Sequence[str]) -> list[LiveCount]:
        """In which running stream queries how many of the records may still lead to something."""


def make_plan(
    settings: Settings,
    graph: Graph,
    selection: str,
    *,
    by: str,
    valid: timedelta = VALID,
    say: Callable[[str], None] = lambda _: None,
) -> StoredPlan:
    """Plan what a purge of the selected records would do; the plan is kept, and nothing else changes."""
    who, now = check_who(by), datetime.now(UTC)
    chosen = open_selection(settings.lake, selection)
    selected = read_ids(settings.lake, chosen.id)
    moment = state.Moment(settings.lake, graph)
    lake = Lake(settings.lake, moment.catalogue, KeyRing(settings))
    say(f"tracing {len(selected):,} records")
    reached = reach(lake, graph, selected, selection=chosen.id)
    say("deciding what becomes of each version")
    streams = StreamRuns(settings.lake, settings.home, reached.rows)
    decided = Steps(lake.catalogue, moment.made, moment.runs, streams).decide(reached)
    rows = _of_steps(reached.rows, decided.steps)
    say("finding what has to be read to make records anew")
    going = _going(rows, decided.steps)
    read = {step.reference: _inputs(lake, graph, step, reached.names, going) for step in decided.steps}
    steps = [msgspec.structs.replace(step, reads=_count_read(step, streams, going, read)) for step in decided.steps]
    remade = {step.run for step in steps if step.lanes and step.run}
    live = graph.count_liveness(reached.names["id"].to_list())
    touched = {step.reference for step in steps}
    told_of = [one.dic for one in moment.made.values() if touched.intersection([one.reference, *one.inputs])]
    dics = {dic for dic in [*told_of, *(run.dic for run in reached.runs)] if dic}
    with folders.new_folder(settings.lake, "plans") as folder:
        records_digest, inputs_digest = write_tables(folder, rows, pl.concat(read.values()))
        plan = Plan(
            selection=chosen.id,
            made=now.isoformat(),
            by=who,
            expires=(now + valid).isoformat(),
            verdict=worst_verdict(run.verdict for run in reached.runs),
            incomplete=[
                *find_doubts(reached, steps, moment.made, moment.runs, live, asserted=streams.listed),
                *streams.doubts(remade),
            ],
            holds=decided.holds,
            gone=reached.gone,
            steps=steps,
            topics=find_topics(settings, now, dics, _streams(dics, moment.runs.values(), live), streams.topics),
            forgets=streams.readers,
            state=moment.state(steps),
            records_digest=records_digest,
            inputs_digest=inputs_digest,
        )
        return write_plan(folder, plan, write_page(plan))


def _of_steps(rows: pl.DataFrame, steps: Iterable[Step]) -> pl.DataFrame:
    """Without those that nothing will be done with, because their dataset is held."""
    versions = pl.DataFrame(
        [(step.dataset, step.version) for step in steps], schema=["dataset", "version"], orient="row"
    )
    return rows.join(versions, on=["dataset", "version"], how="semi")


def _inputs(lake: Lake, graph: Graph, step: Step, names: pl.DataFrame, going: pl.DataFrame) -> pl.DataFrame:
    """What a step must read to make the records anew that were reached in it, without what goes away before.

    Where that is enough, it is what goes away itself.
    """
    if step.policy != "recompute" or step.whole or step.run is None:
        return _NO_INPUTS
    if step.subtracts:
        return _placed(step, going.filter(pl.format("{}/{}", "dataset", "version").is_in(step.inputs)))
    of_step = names.filter(pl.col("dataset") == step.dataset, pl.col("version") == step.version)
    outputs = of_step.join(going, on=PLACE, how="anti")["id"]
    found = lake.stand(pl.Series("id", graph.inputs_of(step.run, outputs.to_list()), pl.String))
    if strangers := [*found.gone["id"], *found.foreign]:
        raise InputError(
            f"{step.reference} cannot be made anew: {strangers[0]}, from which run {step.run} made a record of it, is "
            f"not in the lake. Give {step.dataset!r} another policy in {lake.catalogue.path}."
        )
    return _placed(step, found.rows.join(going, on=PLACE, how="anti").unique(PLACE))


def _placed(step: Step, there: pl.DataFrame) -> pl.DataFrame:
    """Records as those that a step reads."""
    placed = there.rename(_OF).with_columns(dataset=pl.lit(step.dataset), version=pl.lit(step.version))
    return placed.select(_NO_INPUTS.columns)


def _count_read(step: Step, streams: StreamRuns, going: pl.DataFrame, read: Mapping[str, pl.DataFrame]) -> int:
    if step.lanes and step.run:
        return streams.count_events(step.run, going)
    return step.reads or read[step.reference].height


def _going(rows: pl.DataFrame, steps: Sequence[Step]) -> pl.DataFrame:
    """The records that the plan deletes, and their places."""
    told = [(step.dataset, step.version, step.policy) for step in steps]
    policies = pl.DataFrame(told, schema=["dataset", "version", "policy"], orient="row")
    is_deleted = (pl.col("policy") == "delete") | (pl.col("selected") & (pl.col("policy") == "recompute"))
    return rows.join(policies, on=["dataset", "version"]).filter(is_deleted).select("id", *PLACE)


def _streams(dics: Collection[str], runs: Iterable[KnownRun], live: Iterable[LiveCount]) -> set[str]:
    """The stream queries among those that made or read touched versions, and those in which records were met live."""
    return {run.dic for run in runs if run.dic in dics and STREAM in run.marks} | {one.query for one in live}


def find_topics(
    settings: Settings, now: datetime, dics: Iterable[str], streams: Iterable[str] = (), sources: Iterable[str] = ()
) -> list[Topic]:
    """The topics that tell of touched records, those of stream queries live, or that they came along; until when."""
    names = sorted({*map(topic_of, dics), *map(live_topic_of, streams), *sources})
    if settings.recordings is not None:
        return [Topic(name, None) for name in names]  # and they lie in a folder, as long as someone keeps them
    try:
        lifetimes = KafkaTransport(settings).lifetimes(*names, *(f"{name}{_REJECTED}" for name in names))
    except TransportError:
        return [Topic(name, None) for name in names]
    return [
        Topic(name, None if lifetime is None else (now + lifetime).isoformat(timespec="seconds"))
        for name, lifetime in sorted(lifetimes.items())
    ]
