"""The query service over runs of stream queries: jobs, results of a job, sources of a result, and its replay.

It is paper 001's: what a person asks, one question after the other, who has seen a result that cannot be. Answers hold
contents only where they are asked for: these may be personal, and nobody but who asked is told of them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from provenance_store.errors import InputError
from provenance_store.lake.contents import read_lines
from provenance_store.lake.layout import version_of
from provenance_store.model.ids import RecordId
from provenance_store.streams.assertions import LANE
from provenance_store.streams.checkpoints import Checkpoints
from provenance_store.streams.debugging import Session, debug, open_run
from provenance_store.streams.event import END
from provenance_store.streams.folders import (
    BEGUN_FILE,
    KEYS,
    QUERY_FILE,
    REJECTED,
    RUN_FILE,
    STREAMS,
    RunFacts,
    read_facts,
    run_folder,
)
from provenance_store.streams.lanes import bucket_of_lane
from provenance_store.streams.query import StreamQuery
from provenance_store.streams.runs import Keeper, StreamRun

MOST = 50
# Around a time: so many milliseconds before and after it.
WITHIN = 60_000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a query. Nothing before `until` can come any more; None where the run has not published anything yet.

    `read` are the versions that events came from, `results` the datasets that they lead to, and `heard` is when the run
    last got on. How many events came too `late` a run tells when it stops or ends.
    """

    run: str
    query: str
    state: Literal["running", "finished"]
    until: int | None
    late: int
    rejected: int
    read: tuple[str, ...]
    results: tuple[str, ...]
    heard: datetime


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A result, with the time of its event; its content where it was asked for and still stands in the lake."""

    id: str
    dataset: str
    time: int
    content: Any = None


class SourceOf(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a source that a result was made from: its step, and the last step with a checkpoint before it.

    Without such a step it can be replayed from the beginning alone.
    """

    id: str
    stream: str
    time: int
    step: int
    checkpoint: int | None
    content: Any = None


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What a result was made from. Where that is not `exact` some of them may be none, and `note` says why."""

    result: str
    run: str
    query: str
    exact: bool
    sources: list[SourceOf]
    note: str | None = None


def jobs(home: Path, lake: Path) -> list[Job]:
    """All runs: those that are under way, and then those that have ended, each the last heard of first."""
    under_way, told = home.absolute() / "streams", lake.absolute() / STREAMS
    names = {path.name for folder in (under_way, told) for path in _folders(folder)}
    found = [job for name in sorted(names) if (job := _job(under_way / name, lake, name)) is not None]
    return sorted(found, key=lambda one: (one.state == "finished", -one.heard.timestamp()))


def results(
    lake: Path,
    run: str,
    dataset: str | None = None,
    *,
    limit: int = MOST,
    around: int | None = None,
    within: int = WITHIN,
    contents: bool = True,
) -> list[Result]:
    """The newest results of a run, of all its datasets or of one; around a time, only those within so long of it."""
    opened = StreamRun(lake, run)
    datasets = [sink.dataset for sink in opened.query.sinks]
    if dataset is not None and dataset not in datasets:
        raise InputError(f"{opened.query.name!r} writes no dataset {dataset!r}, but {', '.join(datasets)}.")
    found = opened.results(dataset)
    if found.is_empty():
        return []
    if around is not None:
        found = found.filter((pl.col("timestamp") - around).abs() <= within)
    chosen = found.sort("timestamp", LANE, "sequence", descending=True).head(limit)
    rows = list(chosen.select("id", "dataset", "timestamp").iter_rows())
    known = dict(_contents(lake, [row[0] for row in rows])) if contents else {}
    return [Result(id=one, dataset=of, time=time, content=known.get(one)) for one, of, time in rows]


def sources(home: Path, lake: Path, result: str, keeper: Keeper | None = None, *, contents: bool = True) -> Sources:
    """What a result was made from, with the checkpoints before it (the paper's Table 5), as exactly as can be told."""
    run = open_run(lake, result, keeper)
    links = run.backward([result])
    ids, exact, note = links.inputs, all(links.exact), None
    if not exact:
        try:
            session = debug(home, lake, result, keeper)
            if session.same:
                ids, exact = [one.id for one in session.sources if one.id is not None], True
            else:
                note = "A replay made another result, so these are all that it may have been made from."
        except InputError as error:
            note = f"These are all that it may have been made from. {error}"
    lane = _lane_of(run, result)
    checkpoints = Checkpoints(home, run.facts.run, bucket_of_lane(lane))
    told: list[SourceOf] = []
    for source in run.query.sources:
        rows = run.entered(lane, source.name, 0).filter(pl.col("id").is_in(ids))
        read: Sequence[Any] = [None] * len(rows)
        if contents:
            try:
                read = run.contents(source.name, rows["row"].cast(pl.Int64).to_numpy())
            except InputError as error:
                note = note or str(error)
        told += [
            SourceOf(
                id=row["id"],
                stream=source.name,
                time=row["timestamp"],
                step=row["step"],
                checkpoint=checkpoints.last_before(row["step"]),
                content=content,
            )
            for row, content in zip(rows.iter_rows(named=True), read, strict=True)
        ]
    return Sources(result=result, run=run.facts.run, query=run.query.name, exact=exact, sources=told, note=note)


def replay(home: Path, lake: Path, result: str, keeper: Keeper | None = None) -> Session:
    """A result made again step by step, from the last checkpoint before its sources."""
    return debug(home, lake, result, keeper)


def count_events(lake: Path, run: str, query: StreamQuery) -> int:
    """How many events of sources took part in a run, up to what it has published."""
    folders = [run_folder(lake, run) / KEYS / source.name for source in query.sources]
    files = [str(file) for folder in folders for file in folder.glob("[!.]*.parquet")]
    return int(pl.scan_parquet(files).select(pl.len()).collect().item()) if files else 0


def read_query(home: Path, lake: Path, run: str) -> StreamQuery | None:
    """The query that a run executes; None where there is no such run."""
    for folder in (run_folder(lake, run), home.absolute() / "streams" / run / "kept"):
        if (folder / QUERY_FILE).is_file():
            return StreamQuery.from_json((folder / QUERY_FILE).read_bytes())
    return None


def _folders(folder: Path) -> list[Path]:
    there = folder.iterdir() if folder.is_dir() else ()
    return [path for path in there if path.is_dir() and not path.name.startswith(".")]


def _job(workshop: Path, lake: Path, run: str) -> Job | None:
    """What is told of a run; None of one that was begun in this moment, or has just been cleared away."""
    query = read_query(workshop.parent.parent, lake, run)
    if query is None:
        return None
    facts = read_facts(lake, run)
    told = facts or RunFacts(run=run, query=query.name, until=0)
    # What stands in the workshop is not published yet.
    more = sum(file.read_bytes().count(b"\n") for file in (workshop / "kept" / REJECTED).glob("[!.]*.jsonl"))
    return Job(
        run=run,
        query=query.name,
        state="running" if workshop.is_dir() or not told.is_finished else "finished",
        until=None if facts is None else min(facts.until, END),
        late=told.late,
        rejected=told.rejected + more,
        read=told.read,
        results=tuple(sink.dataset for sink in query.sinks),
        heard=datetime.fromtimestamp(max(_times(workshop, run_folder(lake, run))), UTC),
    )


def _times(workshop: Path, told: Path) -> Iterator[float]:
    """When the run got on: it began, a batch was committed, something was published.

    One that is started again and again and never gets through a batch has not got on.
    """
    commits = workshop / "checkpoint" / "commits"
    steps = [commits] if commits.is_dir() else list((workshop / "kept" / KEYS).glob("*"))
    yield 0.0
    for place in (workshop / BEGUN_FILE, told / RUN_FILE, *steps):
        try:
            yield place.stat().st_mtime
        except FileNotFoundError:
            continue


def _lane_of(run: StreamRun, result: str) -> int:
    found = run.results(RecordId.parse(result).dataset).filter(pl.col("id") == result)
    return int(found[LANE][0])


def _contents(lake: Path, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The contents of those results that still stand in the lake, file by file."""
    files: dict[tuple[str, str, str], dict[int, str]] = {}
    for one in ids:
        parts = RecordId.parse(one)
        if parts.file is not None and parts.position is not None:
            files.setdefault((parts.dataset, parts.version, parts.file), {})[parts.position] = one
    for (dataset, name, file), by_position in files.items():
        version = version_of(lake, dataset, name)
        if not (version.path / file).is_file():
            continue  # published in a moment, or purged with all that is in it
        for one, line in zip(by_position.values(), read_lines(version, file, list(by_position)), strict=True):
            if line:
                yield one, msgspec.json.decode(line)["content"]
