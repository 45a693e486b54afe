"""Finished runs of stream queries: their records' ancestors and descendants, by the ids that everyone knows them by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import polars as pl

from provenance_store.errors import IdError, InputError, UnknownRecordError
from provenance_store.lake.contents import read_lines, read_rows
from provenance_store.lake.layout import Version, version_of
from provenance_store.model.ids import LAKE_PREFIX, RecordId, dataset_of, file_prefix
from provenance_store.streams.assertions import LANE, keys_of, read_table, streams_to_keep
from provenance_store.streams.folders import ASIDE, KEYS, QUERY_FILE, read_facts, run_folder
from provenance_store.streams.functions import Content
from provenance_store.streams.inference import Inference, Pairs
from provenance_store.streams.keys import Flags, Keys, Numbers
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.replay import Replayed, replay

# Contents of events that are not in the lake: of a run and a source, by the file and position of each.
Keeper: TypeAlias = Callable[[str, Source, Sequence[tuple[str, int]]], dict[tuple[str, int], bytes]]
# A version by its reference, as it stands or as it will.
Open: TypeAlias = Callable[[str], Version]
_LINKS = pl.Schema({"output": pl.String, "input": pl.String, "exact": pl.Boolean})
_NUMBERS = dict.fromkeys(["timestamp", "sequence", "delay", "position", LANE], pl.Int64)
_TABLE = pl.Schema({"file": pl.String, **_NUMBERS})


@dataclass(frozen=True, slots=True)
class Replay:
    """Results of one lane made again: their stream, the place of each by its id, and all on the way to them."""

    stream: str
    places: dict[str, int]
    made: Replayed


@dataclass(frozen=True, slots=True)
class Links:
    """Outputs beside inputs. A link that is not exact is one of several that keys leave possible; a replay tells."""

    frame: pl.DataFrame
    is_replayed: bool = False

    @classmethod
    def none(cls) -> "Links":
        """No links."""
        return cls(pl.DataFrame(schema=_LINKS))

    @classmethod
    def of(cls, parts: Sequence[pl.DataFrame], *, is_replayed: bool = False) -> "Links":
        """All of them, each pair once: exact if it is by any way."""
        every = pl.concat([pl.DataFrame(schema=_LINKS), *parts])
        return cls(every.group_by("output", "input", maintain_order=True).agg(pl.col("exact").any()), is_replayed)

    @property
    def outputs(self) -> list[str]:
        """Of each link, what was made."""
        return self.frame["output"].to_list()

    @property
    def inputs(self) -> list[str]:
        """Of each link, what it was made from."""
        return self.frame["input"].to_list()

    @property
    def exact(self) -> list[bool]:
        """Of each link, whether it surely is."""
        return self.frame["exact"].to_list()

    def __len__(self) -> int:
        return len(self.frame)


class StreamRun:
    """A run, as its folder in the lake tells: of one that is under way, up to what it has published.

    Rows of a stream count all its events lane by lane; places count those of one lane.
    """

    def __init__(self, lake: Path, run: str, keeper: Keeper | None = None) -> None:
        self.lake = lake
        self._keeper = keeper
        folder = run_folder(lake, run)
        facts = read_facts(lake, run)
        if facts is None:
            raise InputError(f"The lake {lake} holds no assertions of stream run {run!r}: {folder} is not there.")
        self.facts = facts
        self.query = StreamQuery.from_json((folder / QUERY_FILE).read_bytes())
        self.folder = folder
        self._tables: dict[str, pl.DataFrame] = {}
        self._inferences: dict[int, Inference] = {}

    def lanes(self) -> list[int]:
        """The lanes that there are."""
        tables = [self.table(source.name) for source in self.query.sources]
        return sorted({lane for table in tables for lane in table[LANE].unique().to_list()})

    def inference(self, lane: int = 0) -> Inference:
        """The query with all keys of a lane that were stored."""
        if lane not in self._inferences:
            stored: dict[str, Keys] = {}
            names = {source.name for source in self.query.sources} | {one.name for one in self.query.operators}
            for folder in sorted((self.folder / KEYS).iterdir()) if (self.folder / KEYS).is_dir() else []:
                stream = folder.name.partition("@")[0]
                if stream in names and stream not in stored:
                    stored[stream] = keys_of(stream, self.table(folder.name).filter(pl.col(LANE) == lane))
            for name in streams_to_keep(self.query, "needed"):
                stored.setdefault(name, Keys.of(name, ()))  # along some nothing ever came
            self._inferences[lane] = Inference(self.query, stored, self.facts.until)
        return self._inferences[lane]

    def backward(self, ids: Sequence[str], *, replayed: bool = False) -> Links:
        """What results were made from; with a replay where keys do not tell. UnknownRecordError for others."""
        parts, found, is_replayed = [], set(), False
        for sink in self._sinks_of(ids):
            table = self._places_of(sink)
            rows, own = table.find(ids)
            found.update(own)
            for lane, places in table.by_lane(rows):
                inferred = self.inference(lane).backward(sink.stream, places)
                if replayed and not all(pairs.certain.all() for pairs in inferred.values()):
                    is_replayed = True
                    inferred = self._replay(sink, lane, places)
                for name, pairs in inferred.items():
                    outputs = table.ids(places[pairs.rows] + table.begin(lane))
                    source = self._table_of(name)
                    parts.append(_frame(outputs, source.ids(pairs.places + source.begin(lane)), pairs.certain))
        if left := [one for one in ids if one not in found]:
            raise UnknownRecordError(
                f"Run {self.facts.run!r} of {self.query.name!r} did not make {left[0]}: check the id."
            )
        return Links.of(parts, is_replayed=is_replayed)

    def forward(self, ids: Sequence[str], *, replayed: bool = False) -> Links:
        """What results were made from records; none from one that came too late, or that no source has read."""
        parts = []
        for source in self.query.sources:
            table = self._table_of(source.name)
            for lane, places in table.by_lane(table.find(ids)[0]):
                reached = self.inference(lane).forward(source.name, places)
                for sink in self.query.sinks:
                    if (pairs := reached.get(sink.stream)) is not None:
                        made = self._places_of(sink)
                        results = made.ids(pairs.places + made.begin(lane))
                        inputs = table.ids(places[pairs.rows] + table.begin(lane))
                        parts.append(_frame(results, inputs, pairs.certain))
        links = Links.of(parts)
        if not replayed or links.frame["exact"].all():
            return links
        again = self.backward(links.frame["output"].unique(maintain_order=True).to_list(), replayed=True)
        return Links(again.frame.filter(pl.col("input").is_in(list(ids))), is_replayed=True)

    def made(self, ids: Sequence[str]) -> set[str]:
        """Those of the records that are results of this run, at positions that its assertions know."""
        return {one for sink in self._sinks_of(ids) for one in self._places_of(sink).find(ids)[1]}

    def contents(self, source: str, rows: Numbers) -> list[Content]:
        """The contents of first inputs, from where they stand in the lake."""
        told = next(one for one in self.query.sources if one.name == source)
        if told.cache is not None:
            return self._cached(told, self.table(source)[rows].select("file", "position").rows())
        found = self.standing(source, rows)
        if gone := [row for row in rows.tolist() if row not in found]:
            (one,) = self._table_of(source).ids(np.array(gone[:1], np.int64))
            raise InputError(f"{one} is gone, so nothing made from it can be replayed.")
        return [found[row] for row in rows.tolist()]

    def standing(self, source: str, rows: Numbers, open_version: Open | None = None) -> dict[int, Content]:
        """The contents of those first inputs that stand in the lake, by their rows; or in other versions."""
        dataset = next(one.dataset for one in self.query.sources if one.name == source)
        asked = self.table(source)[rows].select("file", "position").with_columns(pl.Series("row", rows, pl.Int64))
        contents: dict[int, Content] = {}
        for (file,), group in asked.group_by("file"):
            name, _, within = str(file).partition("/")
            version = open_version(f"{dataset}/{name}") if open_version else version_of(self.lake, dataset, name)
            positions = group["position"].to_list()
            if within.endswith(".parquet"):
                table, there = read_rows(version, within, positions)
                by_position: dict[int, Content] = dict(zip(there.tolist(), table.to_pylist(), strict=True))
            else:
                lines = read_lines(version, within, positions)
                by_position = {at: msgspec.json.decode(line) for at, line in zip(positions, lines, strict=True) if line}
            for row, position in zip(group["row"].to_list(), positions, strict=True):
                if position in by_position:
                    contents[row] = by_position[position]
        return contents

    def _cached(self, source: Source, places: list[tuple[str, int]]) -> list[Content]:
        """The contents of events that were not landed, from whoever keeps them."""
        known = self._keeper(self.facts.run, source, places) if self._keeper else {}
        if missing := [place for place in places if place not in known]:
            file, position = missing[0]
            gone = f"{file_prefix(source.dataset, *file.split('/', 1))}{position}"
            raise InputError(f"{gone} is in the cache and the topic no more, so nothing made from it can be replayed.")
        return [msgspec.json.decode(known[place]) for place in places]

    def results(self, dataset: str | None = None) -> pl.DataFrame:
        """The results of sinks, with their ids, keys and lanes, as they were made."""
        parts = []
        for sink in self.query.sinks:
            if dataset in {None, sink.dataset}:
                table = self.table(f"{sink.stream}@{sink.dataset}")
                ids = self._places_of(sink).ids(np.arange(len(table)))
                chosen = table.select("timestamp", "sequence", "delay", LANE)
                parts.append(chosen.with_columns(ids.alias("id"), pl.lit(sink.dataset).alias("dataset")))
        return pl.concat(parts).sort("timestamp", LANE, "sequence") if parts else pl.DataFrame()

    def ids_of(self, sink: Sink, table: pl.DataFrame) -> list[str]:
        """The ids of results, by rows of their table."""
        return _Places(sink.dataset, table).ids(np.arange(len(table))).to_list()

    def entered(self, lane: int, source: str, after: int) -> pl.DataFrame:
        """The events of a source that took part in a lane, behind so many, with the step that each took part in."""
        folder = self.folder / KEYS / source
        parts = [
            pl.read_parquet(file).with_columns(pl.lit(int(file.stem.rpartition("-")[2])).alias("step"))
            for file in (sorted(folder.glob("[!.]*.parquet")) if folder.is_dir() else [])
        ]
        steps = pl.concat(
            [part.select("sequence", "step", *([LANE] if LANE in part.columns else [])) for part in parts]
        )
        steps = steps.filter(pl.col(LANE) == lane).drop(LANE) if LANE in steps.columns else steps
        table = self.table(source).with_row_index("row").filter((pl.col(LANE) == lane) & (pl.col("sequence") > after))
        ids = self._table_of(source).ids(table["row"].cast(pl.Int64).to_numpy())
        return table.with_columns(ids.alias("id")).join(steps, on="sequence").sort("sequence")

    def replay(self, dataset: str, ids: Sequence[str]) -> list[Replay]:
        """Make results in a sink's dataset again, lane by lane, with all on the way to them."""
        sink = next((one for one in self.query.sinks if one.dataset == dataset), None)
        if sink is None:
            raise InputError(f"{self.query.name!r} writes no dataset {dataset!r}.")
        table = self._places_of(sink)
        rows, found = table.find(ids)
        if missing := set(ids) - set(found):
            raise UnknownRecordError(f"Run {self.facts.run!r} did not make {min(missing)}: check the id.")
        made = []
        for lane, places in table.by_lane(rows):
            names = table.ids(places + table.begin(lane)).to_list()
            made.append(
                Replay(sink.stream, dict(zip(names, places.tolist(), strict=True)), self._again(sink, lane, places))
            )
        return made

    def _replay(self, sink: Sink, lane: int, places: Numbers) -> dict[str, Pairs]:
        """The true ancestors of results, by source."""
        again = self._again(sink, lane, places)
        rows: dict[str, list[tuple[int, int]]] = {}
        for row, place in enumerate(places.tolist()):
            for stream, at in again.ancestors(sink.stream, place):
                rows.setdefault(stream, []).append((row, at))
        columns = {stream: np.array(pairs, np.int64).reshape(-1, 2) for stream, pairs in rows.items()}
        return {
            stream: Pairs.concat([Pairs(pairs[:, 0], pairs[:, 1], np.ones(len(pairs), np.bool_))])
            for stream, pairs in columns.items()
        }

    def _again(self, sink: Sink, lane: int, places: Numbers) -> Replayed:
        def contents(source: str, at: Numbers) -> list[Content]:
            return self.contents(source, at + self._table_of(source).begin(lane))

        return replay(self.inference(lane), contents, sink.stream, places)

    def _sinks_of(self, ids: Sequence[str]) -> list[Sink]:
        """The sinks whose datasets ids are in: a query may have many."""
        datasets = {name for one in ids if one.startswith(LAKE_PREFIX) and (name := dataset_of(one))}
        return [sink for sink in self.query.sinks if sink.dataset in datasets]

    def _places_of(self, sink: Sink) -> "_Places":
        return _Places(sink.dataset, self.table(f"{sink.stream}@{sink.dataset}"))

    def _table_of(self, source: str) -> "_Places":
        dataset = next(one.dataset for one in self.query.sources if one.name == source)
        return _Places(dataset, self.table(source))

    def table(self, name: str) -> pl.DataFrame:
        """The stored rows of a stream whose events are records, as far as the run has come."""
        if name not in self._tables:
            folder = self.folder / KEYS / name
            if not folder.is_dir() and (self.folder / ASIDE).exists():
                raise InputError(f"A purge is replacing the assertions of run {self.facts.run!r}: ask again.")
            table = read_table(folder) if folder.is_dir() else pl.DataFrame(schema=_TABLE)
            if LANE not in table.columns:
                table = table.with_columns(pl.lit(0, pl.Int64).alias(LANE))
            came = table.filter(pl.col("timestamp") < self.facts.until)
            self._tables[name] = came.with_columns(pl.col("file").cast(pl.String))
        return self._tables[name]


class _Places:
    """Between the ids of records and the rows of their events, which are ordered by lane."""

    def __init__(self, dataset: str, table: pl.DataFrame) -> None:
        self._dataset = dataset
        self._table = table

    def find(self, ids: Sequence[str]) -> tuple[Numbers, list[str]]:
        """The rows of those ids that are records of events here, and these ids."""
        parts = [(one, *place) for one in ids if (place := self._split(one))]
        asked = pl.DataFrame(parts, schema={"id": pl.String, "file": pl.String, "position": pl.Int64}, orient="row")
        found = asked.join(self._table.with_row_index("row"), on=["file", "position"], maintain_order="left")
        return found["row"].cast(pl.Int64).to_numpy(), found["id"].to_list()

    def by_lane(self, rows: Numbers) -> list[tuple[int, Numbers]]:
        """Rows as places in their lanes, lane by lane."""
        lanes = self._table[LANE].to_numpy()[rows]
        return [(lane, rows[lanes == lane] - self.begin(lane)) for lane in np.unique(lanes).tolist()]

    def begin(self, lane: int) -> int:
        """The row of a lane's first event."""
        return int(self._table[LANE].search_sorted(lane, side="left"))

    def ids(self, at: Numbers) -> pl.Series:
        """The ids of the records of rows."""
        rows = self._table[at]
        files = rows["file"].unique().to_list()
        prefixes = [file_prefix(self._dataset, *file.split("/", 1)) for file in files]
        prefix = rows["file"].replace_strict(files, prefixes, return_dtype=pl.String)
        return prefix + rows["position"].cast(pl.String)

    def _split(self, one: str) -> tuple[str, int] | None:
        try:
            parts = RecordId.parse(one)
        except IdError:
            return None
        if parts.dataset != self._dataset or parts.file is None or parts.position is None:
            return None
        return f"{parts.version}/{parts.file}", parts.position


def _frame(outputs: pl.Series, inputs: pl.Series, exact: Flags) -> pl.DataFrame:
    return pl.DataFrame(
        {"output": outputs, "input": inputs, "exact": pl.Series(exact, dtype=pl.Boolean)}, schema=_LINKS
    )
