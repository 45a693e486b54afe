"""Where a run of a stream query is kept, while it runs and after.

While it runs: `<home>/streams/<run>/`. Workers write files there, each step of each bucket its own, so that a step that
is done again writes the same files again. From there they are published: results and landed first inputs as versions of
their datasets, named after the run, and in `<lake>/_streams/<run>/` `query.json`, `run.json` and `keys/<stream>/`, the
assertions. A run is published when it ends; or, where it has a period, segment after segment, `<run>.<number>`, each
when nothing can come any more that belongs to it.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.lake.layout import Version, publish, remove_unfinished, unfinished_path, version_of
from provenance_store.model.account import Account
from provenance_store.model.failpoints import reach as failpoint
from provenance_store.model.files import write_whole
from provenance_store.model.ids import check_run, version_prefix
from provenance_store.model.message import DECLARED, STREAM
from provenance_store.streams.assertions import LANE, placed_table, write_table
from provenance_store.streams.cache import Cache
from provenance_store.streams.checkpoints import Checkpoints
from provenance_store.streams.event import END, EventKey
from provenance_store.streams.query import StreamQuery

STREAMS = "_streams"
QUERY_FILE = "query.json"
RUN_FILE = "run.json"
BEGUN_FILE = "begun.json"
KEYS = "keys"
# What the keys were, while a purge puts others in their place.
ASIDE = ".keys.aside"
CAPTURED = "captured"
REJECTED = "rejected"
_LAST = "end"
EDGES = pa.schema([("output", pa.large_string()), ("input", pa.large_string())])
CAPTURED_SCHEMA = pa.schema([("sequence", pa.int64()), ("parent_stream", pa.string()), ("parent", pa.int64())])


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided when a run begins: its buckets, and the period of its segments in milliseconds of event time."""

    buckets: int = 1
    period: int | None = None


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a run: nothing before `until` can come any more, and so many events came too late.

    `read` are the versions that events came from, and `generation` counts how often it was told. `purged` are the plans
    of purges that have put other keys in the place of those that the run told.
    """

    run: str
    query: str
    until: int
    late: int = 0
    rejected: int = 0
    read: tuple[str, ...] = ()
    generation: int = 0
    purged: tuple[str, ...] = ()

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended."""
        return self.until >= END


def run_folder(lake: Path, run: str) -> Path:
    """Where the assertions of a run are."""
    return lake.absolute() / STREAMS / check_run(run)


def read_facts(lake: Path, run: str) -> RunFacts | None:
    """What is told of a run; None where nothing is."""
    try:
        return msgspec.json.decode((run_folder(lake, run) / RUN_FILE).read_bytes(), type=RunFacts)
    except FileNotFoundError:
        return None


def write_facts(lake: Path, facts: RunFacts) -> None:
    """Tell of a run."""
    write_whole(run_folder(lake, facts.run) / RUN_FILE, msgspec.json.format(msgspec.json.encode(facts)) + b"\n")


def under_way(home: Path) -> Iterator[tuple[str, StreamQuery]]:
    """The runs that were begun here and have not ended."""
    for path in sorted((home.absolute() / "streams").glob(f"[!.]*/kept/{QUERY_FILE}")):
        yield path.parent.parent.name, StreamQuery.read(path)


class Workshop:
    """The folder of a run that is under way."""

    def __init__(self, home: Path, run: str, query: StreamQuery) -> None:
        self._home = home
        self.run = check_run(run)
        self.query = query
        self.folder = home.absolute() / "streams" / run
        self.kept = self.folder / "kept"
        self.checkpoint = self.folder / "checkpoint"
        self._data = self.folder / "data"
        self.begun = Begun()

    def open(self, begun: Begun | None = None) -> None:
        """Make it, or go on in it as it was begun; InputError where it belongs to another query."""
        self.kept.mkdir(parents=True, exist_ok=True)
        description, decided = self.kept / QUERY_FILE, self.folder / BEGUN_FILE
        if description.exists() and description.read_bytes() != self.query.to_json():
            raise InputError(
                f"Run {self.run!r} was begun with another description of its query: give this one a new run id."
            )
        if decided.exists():
            self.begun = msgspec.json.decode(decided.read_bytes(), type=Begun)
        else:
            self.begun = begun or Begun()
            write_whole(decided, msgspec.json.encode(self.begun))
        write_whole(description, self.query.to_json())

    def trim_caches(self) -> None:
        """Keep what is cached of sources within its bounds."""
        for source in self.query.sources:
            if source.cache is not None:
                self.cache(source.name).trim(source.cache)

    def cache(self, source: str) -> Cache:
        """Where the events of a source are cached."""
        return Cache(self._home, self.run, source)

    def checkpoints(self, bucket: int) -> Checkpoints:
        """Where states of a bucket are kept, to replay from."""
        return Checkpoints(self._home, self.run, bucket)

    def version_at(self, until: int) -> str:
        """The version that what is made up to a time belongs to."""
        if self.begun.period is None:
            return self.run
        return f"{self.run}.{_LAST if until >= END else max(0, until) // self.begun.period}"

    def land(self, dataset: str, version: str, part: str, lines: Sequence[bytes]) -> list[tuple[str, int]]:
        """Write records of a dataset, a line each; the file within the dataset, and the position, of each."""
        name = f"part-{part}.jsonl"
        path = self._data / dataset / version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, b"".join(line + b"\n" for line in lines))
        places, at = [], 0
        for line in lines:
            places.append((f"{version}/{name}", at))
            at += len(line) + 1
        return places

    def keep(
        self, stream: str, part: str, rows: Sequence[tuple[EventKey, tuple[str, int]]], lanes: Sequence[int]
    ) -> None:
        """Store keys with the places of their records."""
        table = placed_table(rows, lanes if self.query.by else None)
        write_table(self.kept / KEYS / stream / f"part-{part}.parquet", table)

    def capture(self, stream: str, part: str, edges: Sequence[tuple[int, str, int]], lanes: Sequence[int]) -> None:
        """Store edges as they were seen: the number of an event, and stream and number of one that it was made from."""
        columns = zip(*edges, strict=True) if edges else [(), (), ()]
        table = pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, CAPTURED_SCHEMA.types, strict=True)],
            schema=CAPTURED_SCHEMA,
        )
        if self.query.by:
            table = table.append_column(LANE, pa.array(lanes, pa.int64()))
        write_table(self.kept / CAPTURED / stream / f"part-{part}.parquet", table)

    def reject(self, part: str, lines: Sequence[bytes]) -> None:
        """Note what came and is no event: where it stands."""
        path = self.kept / REJECTED / f"part-{part}.jsonl"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, b"".join(line + b"\n" for line in lines))

    def publish(self, lake: Path, until: int, late: int = 0) -> dict[str, list[Path]]:
        """Publish what can be: of each dataset the new versions. Killed on the way and called again, it goes on.

        Whatever is made from now on must be made up to this time or later.
        """
        closed = list(self._closed(until))
        if until < END and not closed:
            return {}
        facts = read_facts(lake, self.run) or RunFacts(run=self.run, query=self.query.name, until=until)
        # Assertions first: whoever sees a result can ask where it is from.
        target = run_folder(lake, self.run)
        read = set(facts.read)
        for file in self._left():
            read |= self._read_by(file)
            _bring(file, target / file.relative_to(self.kept))
        failpoint("assertions published")
        generation = facts.generation + (until > facts.until)
        rejected = sum(file.read_bytes().count(b"\n") for file in (target / REJECTED).glob("*.jsonl"))
        facts = msgspec.structs.replace(
            facts, until=until, late=late, rejected=rejected, read=tuple(sorted(read)), generation=generation
        )
        self._write_graph(target, facts, {*self._published(lake), *closed})
        write_facts(lake, facts)
        failpoint("facts told")
        made: dict[str, list[Path]] = {}
        for dataset, name in closed:
            made.setdefault(dataset, []).append(self._publish(lake, dataset, name, facts))
            failpoint("version published")
        return made

    def finish(self, lake: Path, late: int = 0) -> dict[str, list[Path]]:
        """Publish all that is left, and clear the workshop away."""
        made = self.publish(lake, END, late)
        # In one step: with half of its checkpoint it would begin anew.
        gone = self.folder.with_name(f".{self.run}.gone")
        shutil.rmtree(gone, ignore_errors=True)
        self.folder.rename(gone)
        shutil.rmtree(gone)
        return made

    def _datasets(self) -> list[str]:
        landed = [source.dataset for source in self.query.sources if source.lands]
        return list(dict.fromkeys([*landed, *(sink.dataset for sink in self.query.sinks)]))

    def _closed(self, until: int) -> Iterator[tuple[str, str]]:
        """The versions, by dataset, to which nothing will be added any more."""
        period = self.begun.period
        for dataset in self._datasets():
            if period is None:
                if until >= END:
                    yield dataset, self.run
                continue
            staged = [path.name for path in sorted((self._data / dataset).glob("*"))]
            for name in staged:
                number = name.rpartition(".")[2]
                if until >= END or (number != _LAST and int(number) < until // period):
                    yield dataset, name

    def _published(self, lake: Path) -> list[tuple[str, str]]:
        """The versions of results that are published, by dataset."""
        pattern = self.run if self.begun.period is None else f"{self.run}.*"
        found = [(sink.dataset, lake.absolute() / sink.dataset) for sink in self.query.sinks]
        return [(dataset, path.name) for dataset, folder in found for path in folder.glob(pattern)]

    def _left(self) -> list[Path]:
        """Files that workers wrote and that are not published."""
        return sorted(file for file in self.kept.rglob("*") if file.is_file() and not file.name.startswith("."))

    def _read_by(self, file: Path) -> set[str]:
        """The versions that events came from, as dataset/version, by a file of a source's keys."""
        datasets = {source.name: source.dataset for source in self.query.sources}
        if file.parent.parent.name != KEYS or (dataset := datasets.get(file.parent.name)) is None:
            return set()
        files = pl.read_parquet(file, columns=["file"])["file"].cast(pl.String).unique().to_list()
        return {f"{dataset}/{one.partition('/')[0]}" for one in files}

    def _write_graph(self, folder: Path, facts: RunFacts, versions: set[tuple[str, str]]) -> None:
        """The run for the lake graph: which version was made from which, and so not all that is known.

        Which record was made from which is asked of the assertions.
        """
        sinks = {sink.dataset for sink in self.query.sinks}
        made = [version_prefix(dataset, name) for dataset, name in sorted(versions) if dataset in sinks]
        read = [version_prefix(*reference.split("/")) for reference in facts.read]
        edges = [(output, source) for output in made for source in read]
        graph = pa.table({"output": [edge[0] for edge in edges], "input": [edge[1] for edge in edges]}, EDGES)
        unfinished = folder / ".graph.parquet"
        pq.write_table(graph, unfinished)
        unfinished.replace(folder / "graph.parquet")
        counts = dict.fromkeys(("messages", "bytes", "duplicates", "discarded", "rejected"), 0)
        sizes = dict.fromkeys(("edges_in", "edges_local", "edges_out"), len(edges))
        account = Account(
            run=self.run, dic=self.query.name, verdict="unknown", missing={}, seconds=0.0, marks=[DECLARED, STREAM],
            generation=facts.generation, **counts, **sizes,
        )  # fmt: skip
        account.write(folder)

    def _publish(self, lake: Path, dataset: str, name: str, facts: RunFacts) -> Path:
        version = version_of(lake, dataset, name)
        staged = self._data / dataset / name
        if not self._is_ours(version):
            landed = dataset in {source.dataset for source in self.query.sources}
            # As the markers of other jobs' versions, so that a purge knows whose graph it must have.
            about = {
                "run": self.run,
                "dic": self.query.name,
                "inputs": [] if landed else list(facts.read),
                "generation": 0,
                "stream": self.query.name,
            }
            remove_unfinished(version)
            unfinished = unfinished_path(version)
            staged.mkdir(parents=True, exist_ok=True)
            shutil.copytree(staged, unfinished)
            publish(unfinished, version, about)
        shutil.rmtree(staged, ignore_errors=True)
        return version.path

    def _is_ours(self, version: Version) -> bool:
        """Whether this run has published the version already."""
        if not version.exists():
            return False
        marker = version.marker()
        return marker.get("run") == self.run and marker.get("stream") == self.query.name


def _bring(file: Path, target: Path) -> None:
    """Move a file, between file systems too, so that it is there whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}")
    shutil.copyfile(file, unfinished)
    unfinished.replace(target)
    if file.name != QUERY_FILE:
        file.unlink()
