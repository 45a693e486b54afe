"""Where a run of a stream query is kept, while it runs and after.

While it runs: `<home>/streams/<run>/`, of which every batch has files of its own, so that a batch that is done again
writes the same files again. When it is finished: results and landed first inputs are versions of their datasets, named
after the run, and `<lake>/_streams/<run>/` holds `query.json`, `run.json` and `keys/<stream>/`, the assertions.
"""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.lake.layout import publish, remove_unfinished, unfinished_path, version_of, was_made
from provenance_store.model.account import Account
from provenance_store.model.files import write_whole
from provenance_store.model.ids import check_run, version_prefix
from provenance_store.model.message import DECLARED, STREAM
from provenance_store.streams.assertions import placed_table, read_table, write_table
from provenance_store.streams.event import EventKey
from provenance_store.streams.query import StreamQuery

STREAMS = "_streams"
QUERY_FILE = "query.json"
RUN_FILE = "run.json"
KEYS = "keys"
CAPTURED = "captured"
REJECTED = "rejected"
EDGES = pa.schema([("output", pa.large_string()), ("input", pa.large_string())])
CAPTURED_SCHEMA = pa.schema([("sequence", pa.int64()), ("parent_stream", pa.string()), ("parent", pa.int64())])


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a finished run: nothing before `until` could come any more, and so many events came too late."""

    run: str
    query: str
    until: int
    late: int = 0
    rejected: int = 0


def run_folder(lake: Path, run: str) -> Path:
    """Where the assertions of a finished run are."""
    return lake.absolute() / STREAMS / check_run(run)


class Workshop:
    """The folder of a run that is under way."""

    def __init__(self, home: Path, run: str, query: StreamQuery) -> None:
        self.run = check_run(run)
        self.query = query
        self.folder = home.absolute() / "streams" / run
        self.kept = self.folder / "kept"
        self.checkpoint = self.folder / "checkpoint"

    def open(self) -> None:
        """Make it, or go on in it; InputError where it belongs to another query."""
        self.kept.mkdir(parents=True, exist_ok=True)
        description = self.kept / QUERY_FILE
        if description.exists() and description.read_bytes() != self.query.to_json():
            raise InputError(
                f"Run {self.run!r} was begun with another description of its query: give this one a new run id."
            )
        write_whole(description, self.query.to_json())

    def land(self, dataset: str, part: str, lines: Sequence[bytes]) -> list[tuple[str, int]]:
        """Write records of a dataset, a line each; the file within the dataset, and the position, of each."""
        name = f"part-{part}.jsonl"
        path = self.folder / "data" / dataset / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, b"".join(line + b"\n" for line in lines))
        places, at = [], 0
        for line in lines:
            places.append((f"{self.run}/{name}", at))
            at += len(line) + 1
        return places

    def keep(self, stream: str, part: str, rows: Sequence[tuple[EventKey, tuple[str, int]]]) -> None:
        """Store keys with the places of their records."""
        write_table(self.kept / KEYS / stream / f"part-{part}.parquet", placed_table(rows))

    def capture(self, stream: str, part: str, edges: Sequence[tuple[int, str, int]]) -> None:
        """Store edges as they were seen: the number of an event, and stream and number of one that it was made from."""
        columns = zip(*edges, strict=True) if edges else [(), (), ()]
        table = pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, CAPTURED_SCHEMA.types, strict=True)],
            schema=CAPTURED_SCHEMA,
        )
        write_table(self.kept / CAPTURED / stream / f"part-{part}.parquet", table)

    def reject(self, part: str, lines: Sequence[bytes]) -> None:
        """Note what came and is no event: where it stands."""
        path = self.kept / REJECTED / f"part-{part}.jsonl"
        path.parent.mkdir(exist_ok=True)
        write_whole(path, b"".join(line + b"\n" for line in lines))

    def count_rejected(self) -> int:
        """How much came that is no event."""
        return sum(file.read_bytes().count(b"\n") for file in (self.kept / REJECTED).glob("*.jsonl"))

    def finish(self, lake: Path, facts: RunFacts) -> dict[str, Path]:
        """Publish all of it; the new versions by dataset. Killed on the way and called again, it goes on."""
        target = run_folder(lake, self.run)
        if not target.exists():
            write_whole(self.kept / RUN_FILE, msgspec.json.format(msgspec.json.encode(facts)) + b"\n")
            target.parent.mkdir(parents=True, exist_ok=True)
            # Assertions first: whoever sees a result can ask where it is from.
            unfinished = target.with_name(f".{self.run}")
            shutil.rmtree(unfinished, ignore_errors=True)
            shutil.copytree(self.kept, unfinished)
            self._write_graph(unfinished)
            unfinished.rename(target)
        made = {dataset: self._publish(lake, dataset) for dataset in self._datasets()}
        shutil.rmtree(self.folder)
        return made

    def _datasets(self) -> Iterable[str]:
        landed = [source.dataset for source in self.query.sources if source.topic is not None]
        return dict.fromkeys([*landed, *(sink.dataset for sink in self.query.sinks)])

    def _write_graph(self, folder: Path) -> None:
        """The run for the lake graph: which version was made from which, and so not all that is known.

        Which record was made from which is asked of the assertions.
        """
        made = [version_prefix(sink.dataset, self.run) for sink in self.query.sinks]
        read = [version_prefix(*reference.split("/")) for reference in self._read_versions()]
        edges = [(output, source) for output in made for source in read]
        graph = pa.table({"output": [edge[0] for edge in edges], "input": [edge[1] for edge in edges]}, EDGES)
        pq.write_table(graph, folder / "graph.parquet")
        counts = dict.fromkeys(("messages", "bytes", "duplicates", "discarded", "rejected"), 0)
        sizes = dict.fromkeys(("edges_in", "edges_local", "edges_out"), len(edges))
        account = Account(
            run=self.run, dic=self.query.name, verdict="unknown", missing={}, seconds=0.0, marks=[DECLARED, STREAM],
            **counts, **sizes,
        )  # fmt: skip
        account.write(folder)

    def _read_versions(self) -> list[str]:
        """The versions that events of sources came from, as dataset/version."""
        found = set()
        for source in self.query.sources:
            if (self.kept / KEYS / source.name).is_dir():
                files = read_table(self.kept / KEYS / source.name)["file"].cast(pl.String).unique().to_list()
                found |= {f"{source.dataset}/{file.partition('/')[0]}" for file in files}
        return sorted(found)

    def _publish(self, lake: Path, dataset: str) -> Path:
        version = version_of(lake, dataset, self.run)
        landed = dataset in {source.dataset for source in self.query.sources}
        # As the markers of other jobs' versions, so that a purge knows whose graph it must have.
        about = {
            "run": self.run,
            "dic": self.query.name,
            "inputs": [] if landed else self._read_versions(),
            "generation": 0,
            "stream": self.query.name,
        }
        if not was_made(version, about):
            remove_unfinished(version)
            unfinished = unfinished_path(version)
            staged = self.folder / "data" / dataset
            staged.mkdir(parents=True, exist_ok=True)
            shutil.copytree(staged, unfinished)
            publish(unfinished, version, about)
        return version.path
