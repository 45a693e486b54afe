"""What a plan has to know of stream runs: who took in touched records, in which lanes, and what else holds them."""

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Catalogue, Recompute
from provenance_store.storage.paths import RemotePath
from provenance_store.streams.assertions import LANE
from provenance_store.streams.folders import STREAMS, under_way
from provenance_store.streams.operators import Process
from provenance_store.streams.query import StreamQuery, functions_of
from provenance_store.streams.runs import StreamRun

_PLACE = ["file", "position"]


class StreamRuns:
    """The stream runs of a lake, asked about touched records: rows with dataset, version, file and position."""

    def __init__(self, lake: Path, home: Path, touched: pl.DataFrame) -> None:
        self._lake = lake
        self._home = home
        self._touched = touched.select(
            "dataset", pl.concat_str("version", pl.lit("/"), "file").alias("file"), "position", "version"
        )
        self._runs: dict[str, StreamRun] = {}
        self._lanes: dict[str, list[int]] = {}

    def lanes(self, run: str) -> list[int]:
        """The lanes of a run in which touched records took part."""
        if run not in self._lanes:
            opened = self.open(run)
            parts = [
                opened.table(source.name).join(self._in(source.dataset), on=_PLACE, how="semi")[LANE]
                for source in opened.query.sources
            ]
            self._lanes[run] = pl.concat(parts).unique().sort().to_list()
        return self._lanes[run]

    def count_events(self, run: str, going: pl.DataFrame) -> int:
        """How many first inputs of these lanes are left when some records have gone."""
        opened, lanes = self.open(run), self.lanes(run)
        gone = going.select("dataset", pl.concat_str("version", pl.lit("/"), "file").alias("file"), "position")
        count = 0
        for source in opened.query.sources:
            rows = opened.table(source.name).with_row_index("row").filter(pl.col(LANE).is_in(lanes))
            left = rows.join(gone.filter(pl.col("dataset") == source.dataset), on=_PLACE, how="anti")
            count += len(opened.standing(source.name, left["row"].cast(pl.Int64).to_numpy()))
        return count

    @cached_property
    def readers(self) -> list[str]:
        """The runs that took in touched records, and those that go on and may."""
        return sorted({*self._told, *(run for run, _ in self._going_on())})

    @property
    def topics(self) -> set[str]:
        """The topics that touched records came along."""
        queries = [self.open(run).query for run in self._told] + [query for _, query in self._going_on()]
        return {
            source.topic
            for query in queries
            for source in query.sources
            if source.topic is not None and source.dataset in self._datasets
        }

    def doubts(self, remade: Collection[str]) -> Iterator[str]:
        """Why more may have been made from the records than is known, but for runs that are made anew: sentences."""
        for run, query in self._going_on():
            read = sorted({source.dataset for source in query.sources} & self._datasets)
            yield (
                f"Run {run} of {query.name} goes on and reads {' and '.join(read)}: what it holds of the records and "
                "will make from them is not known. Stop and finish the run, `headwater merge` it, and plan again."
            )
        for run in self._told:
            remembering = [one.name for one in self.open(run).query.operators if isinstance(one, Process)]
            if remembering and run not in remade:
                yield (
                    f"{remembering[0]!r} in run {run} remembers: what it made after one of the records may show what "
                    "it remembered of it, and is not told to be made from it. Where all its results have the policy "
                    "recompute, they are made anew without."
                )

    def check_can_be_remade(self, run: str, catalogue: Catalogue) -> None:
        """Refuse what cannot be made anew, or not as it would have been."""
        opened = self.open(run)
        query = opened.query
        give = f"Give the datasets of its sinks another policy in {catalogue.path}."
        if not opened.facts.is_finished:
            raise InputError(
                f"Run {run} of {query.name} goes on, and its results cannot be made anew while it does: stop and "
                "finish it, then plan again."
            )
        if cached := [source.name for source in query.sources if source.cache is not None]:
            raise InputError(
                f"The results of run {run} cannot be made anew: the events of {cached[0]!r} were never landed in the "
                f"lake. {give}"
            )
        if measured := [one.name for one in query.operators if one.delay is None]:
            raise InputError(
                f"The results of run {run} cannot be made anew: how long {measured[0]!r} took was measured, and nobody "
                f"knows how long it would have taken. {give}"
            )
        for sink in query.sinks:
            told = catalogue.datasets.get(sink.dataset)
            if told is None or not isinstance(told.policy, Recompute):
                raise InputError(
                    f"The results of run {run} are made anew together, and {sink.dataset!r} is not to be recomputed: "
                    f"tell the same policy for all of {', '.join(one.dataset for one in query.sinks)} in "
                    f"{catalogue.path}."
                )
        functions_of(query)

    def fields_of(self, run: str, dataset: str) -> set[str]:
        """The fields of a source that decide when and in which lane its events take part."""
        query = self.open(run).query
        return {*query.by, *(source.time for source in query.sources if source.dataset == dataset)}

    def open(self, run: str) -> StreamRun:
        """A run that is told of in the lake."""
        if run not in self._runs:
            self._runs[run] = StreamRun(self._lake, run)
        return self._runs[run]

    @cached_property
    def _datasets(self) -> set[str]:
        return set(self._touched["dataset"].unique())

    @cached_property
    def _told(self) -> list[str]:
        """The runs whose assertions tell of touched records."""
        versions = set(self._touched.select(pl.format("{}/{}", "dataset", "version")).to_series())
        return [run for run in self.listed if versions.intersection(self.open(run).facts.read) and self.lanes(run)]

    @cached_property
    def listed(self) -> list[str]:
        """The runs whose assertions are in the lake."""
        if isinstance(self._lake, RemotePath):
            return []  # streams write lakes on this machine
        return sorted(path.parent.name for path in (self._lake / STREAMS).glob("*/run.json"))

    def _going_on(self) -> Iterator[tuple[str, StreamQuery]]:
        """Runs that are not finished and read datasets of touched records."""
        found = {run: query for run, query in under_way(self._home) if run not in self.listed}
        found |= {run: self.open(run).query for run in self.listed if not self.open(run).facts.is_finished}
        for run, query in sorted(found.items()):
            if self._datasets & {source.dataset for source in query.sources}:
                yield run, query

    def _in(self, dataset: str) -> pl.DataFrame:
        return self._touched.filter(pl.col("dataset") == dataset)
