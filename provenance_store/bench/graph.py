"""The lake graph, measured: merging beside one transaction an output, questions, a large answer, many starts at once.

It runs on a Neo4j of its own in a temporary folder, so that nobody's lake graph is touched and it is empty at first.
"""

import os
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from typing import Any

import msgspec
import polars as pl

from provenance_store.bench.graph_baselines import Merging, merge_singly
from provenance_store.bench.lake_workflow import LakeWorkflow
from provenance_store.export.bulk import RECORDS_FILE
from provenance_store.graph.answer import Direction
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.trace import Question
from provenance_store.services import lifecycle
from provenance_store.services.application import listen
from provenance_store.services.neo4j import Neo4j
from provenance_store.services.service import Say
from provenance_store.settings import LOOPBACK, Neo4jSettings, Settings, load_settings

SMALL = 1_000
LARGE = 100_000
_WARM_QUESTIONS = 20


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of question, asked of many records in turn: milliseconds, and how large the answers were."""

    direction: Direction
    asked: int
    most_records: int
    p50: float
    p95: float


class Streaming(msgspec.Struct, frozen=True, kw_only=True):
    """One large answer read to its end, in a process of its own: `memory` is what that needed beyond its start."""

    records: int
    edges: int
    first_seconds: float
    seconds: float
    memory: int


class Many(msgspec.Struct, frozen=True, kw_only=True):
    """Forward from many starts: by Spark on the reduced graphs, its start included, and by a question each."""

    starts: int
    bulk_seconds: float
    single_seconds: float
    wrong: int


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `wrong` counts answers that differ from what the data says."""

    records: int
    edges: int
    merging: list[Merging]
    asking: list[Asking]
    streaming: Streaming
    many: Many
    wrong: int
    load: float

    @property
    def speedup(self) -> float:
        """How many times as fast as one transaction an output, of one statement."""
        ours, baseline, *_ = self.merging
        return ours.rate / baseline.rate

    def tables(self) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
        """As it is shown to people: title, columns, rows."""
        ours = self.merging[0].rate
        merging = [
            [m.way, f"{m.outputs:,}", f"{m.edges:,}", f"{m.seconds:,.1f}", f"{m.rate:,.0f}", f"{ours / m.rate:,.1f}"]
            for m in self.merging
        ]
        title = f"Merging, {self.speedup:,.0f} times as fast as one transaction an output"
        yield title, ("", "outputs", "edges", "seconds", "edges/s", "times slower"), merging
        asking = [
            [a.direction, f"{a.asked:,}", f"{a.most_records:,}", f"{a.p50:,.1f}", f"{a.p95:,.1f}"] for a in self.asking
        ]
        title = f"Questions to {self.records:,} records and {self.edges:,} edges"
        yield title, ("", "asked", "records at most", "p50 ms", "p95 ms"), asking
        s = self.streaming
        cells = [
            f"{s.records:,}",
            f"{s.edges:,}",
            f"{s.first_seconds:.2f}",
            f"{s.seconds:.1f}",
            f"{s.memory / 2**20:,.0f}",
        ]
        columns = ("", "records", "edges", "seconds to the first", "seconds to the last", "MiB on the client")
        yield "A large answer, streamed", columns, [["backward", *cells]]
        many = [f"{self.many.starts:,}", f"{self.many.bulk_seconds:,.1f}", f"{self.many.single_seconds:,.1f}"]
        yield "Many starts at once", ("", "starts", "seconds on Spark", "seconds one by one"), [["forward", *many]]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        rates = {merging.way: merging.rate for merging in self.merging}
        return {**msgspec.to_builtins(self), "edges_per_second": rates, "times_baseline": self.speedup}


def measure_graph(*, tweets: int, questions: int, baseline_outputs: int, starts: int, say: Say) -> Measured:
    """Make the workflow's graphs of so many tweets, merge them, and ask."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as temporary:
        say(f"Making the graphs of {tweets:,} tweets")
        workflow = LakeWorkflow(tweets)
        folders = workflow.write(Path(temporary) / "reduced")
        edges = pl.concat([workflow.counts, workflow.totals])
        with own_neo4j(Path(temporary) / "home", say) as settings, LakeGraph(settings) as graph:
            say("One transaction an output")
            baselines = merge_singly(settings, workflow.counts, baseline_outputs)
            say(f"Merging {edges.height:,} edges")
            began = time.monotonic()
            for folder in folders:
                graph.merge(folder)
            merged = Merging(
                way="headwater merge",
                outputs=edges["output"].n_unique(),
                edges=edges.height,
                seconds=time.monotonic() - began,
            )
            say("Asking")
            backward, wrong_backward = _ask(graph, workflow, "backward", questions)
            forward, wrong_forward = _ask(graph, workflow, "forward", questions)
            say("Streaming")
            streamed = _stream(settings, workflow)
            many = _ask_many(graph, workflow, folders, starts, say)
            return Measured(
                records=pl.concat([edges["output"], edges["input"]]).n_unique(),
                edges=edges.height,
                merging=[merged, *baselines],
                asking=[backward, forward],
                streaming=streamed,
                many=many,
                wrong=wrong_backward + wrong_forward + many.wrong,
                load=os.getloadavg()[0],
            )


@contextmanager
def own_neo4j(home: Path, say: Say) -> Iterator[Settings]:
    """A Neo4j of one's own in a folder, until the block ends."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    base = load_settings()
    services = base.services.model_copy(update={"neo4j_port": port})
    settings = base.model_copy(update={"home": home, "services": services, "neo4j": Neo4jSettings()})
    service = Neo4j(settings)
    try:
        lifecycle.up(service, say)
        yield settings
    finally:
        lifecycle.down(service, say, purge_data=True)


def _ask(graph: LakeGraph, workflow: LakeWorkflow, direction: Direction, count: int) -> tuple[Asking, int]:
    """Ask of records drawn by chance, each of which answers with at most a thousand; how many answers were wrong."""
    truth = _truth(workflow, direction, _WARM_QUESTIONS + count)
    ask = graph.backward if direction == "backward" else graph.forward
    times, sizes, wrong = [], [], 0
    for record, expected in truth:
        began = time.monotonic()
        answer = ask([record])
        times.append((time.monotonic() - began) * 1000)
        sizes.append(len(answer.records))
        wrong += {found.id for found in answer.records} != expected
    times = times[_WARM_QUESTIONS:] or times
    # Between 100 numbers lie 99 cuts.
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    return Asking(direction=direction, asked=len(times), most_records=max(sizes), p50=cuts[49], p95=cuts[94]), wrong


def _truth(workflow: LakeWorkflow, direction: Direction, count: int) -> list[tuple[str, set[str]]]:
    """Records, and what the data says that they reach."""
    counts = workflow.counts
    if direction == "backward":
        reached = (
            counts.group_by("output", maintain_order=True).agg("input").filter(pl.col("input").list.len() <= SMALL)
        )
    else:
        totals = workflow.totals.select(pl.col("output").alias("total"), pl.col("input").alias("output"))
        reached = (
            counts.join(totals, on="output")
            .group_by("input", maintain_order=True)
            .agg(pl.col("output").append(pl.col("total")))
        )
    drawn = reached.sample(min(count, reached.height), seed=2)
    return [(record, set(others)) for record, others in drawn.iter_rows()]


def _stream(settings: Settings, workflow: LakeWorkflow) -> Streaming:
    """The answer that is nearest to a hundred thousand records."""
    sizes = workflow.counts.group_by("output").len()
    record = sizes.sort((pl.col("len").cast(pl.Int64) - LARGE).abs(), "output")["output"][0]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(_read_all, settings, record).result()


def _ask_many(graph: LakeGraph, workflow: LakeWorkflow, folders: Sequence[Path], count: int, say: Say) -> Many:
    """The same questions by Spark and one by one; wrong are starts of which the two do not say the same."""
    drawn = workflow.counts["input"].unique(maintain_order=True).sample(count, seed=3)
    parent = folders[0].parent
    with tempfile.TemporaryDirectory(dir=parent.parent) as scratch:
        starts, out = Path(scratch) / "starts.txt", Path(scratch) / "answers"
        starts.write_text("".join(f"{record}\n" for record in drawn))
        say(f"Tracing {count:,} records on Spark")
        command = [sys.executable, "-m", "spark_apps.lineage", "forward", f"--starts={starts}", f"--out={out}"]
        began = time.monotonic()
        for _ in listen([*command, "--", str(parent)], "The trace", say):
            pass
        bulk_seconds = time.monotonic() - began
        reached = pl.read_parquet(out / RECORDS_FILE).group_by("start").agg("record")
        told = dict(reached.iter_rows())
    say(f"Asking of {count:,} records one by one")
    began = time.monotonic()
    answers = {record: graph.forward([record]) for record in drawn}
    single_seconds = time.monotonic() - began
    wrong = sum(
        {found.id for found in answer.records} != set(told.get(record, ())) for record, answer in answers.items()
    )
    return Many(starts=count, bulk_seconds=bulk_seconds, single_seconds=single_seconds, wrong=wrong)


def _read_all(settings: Settings, record: str) -> Streaming:
    with LakeGraph(settings) as graph:
        graph.forward([record], depth=1)  # what is imported and allocated once
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()
        trace = graph.trace(Question((record,), "backward"))
        records = trace.records()
        next(records)
        first = time.monotonic() - began
        read = 1 + sum(1 for _ in records), sum(1 for _ in trace.edges())
        return Streaming(
            records=read[0],
            edges=read[1],
            first_seconds=first,
            seconds=time.monotonic() - began,
            memory=(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
        )
