"""How fast live provenance is told (paper 004, Figures 16 and 17): ANK-1 here and by buckets, ANK-N on Spark."""

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import msgspec

from provenance_store.bench.live_flow import Flow
from provenance_store.bench.spread import spread
from provenance_store.services.application import listen
from provenance_store.services.service import Say
from provenance_store.streams.live import Live
from provenance_store.streams.live_messages import split_step

COLUMNS = (
    "way",
    "parallel",
    "queries",
    "sources a result",
    "overlap",
    "results/s",
    "edges/s, median",
    "latency of a step, ms",
    "results a step",
    "processor µs an edge",
    "state, kB",
)
STEP = 100


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One run: how long all of it and a step took, with how much processor time, and the most that was kept."""

    seconds: float
    step_seconds: float
    processor: float
    state: int


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of one way over one flow; `results` are those of all queries, `step` those of one step."""

    way: str
    parallel: int
    flow: Flow
    results: int
    step: int
    turns: list[Turn]

    @property
    def rate(self) -> float:
        """Results a second, the median."""
        return median(self.results / turn.seconds for turn in self.turns)

    def cells(self) -> list[str]:
        """As the table shows it."""
        edges = self.results * self.flow.size
        return [
            self.way,
            str(self.parallel),
            str(self.flow.queries),
            str(self.flow.size),
            f"{self.flow.overlap} %",
            spread([self.results / turn.seconds for turn in self.turns], ",.0f"),
            f"{self.rate * self.flow.size:,.0f}",
            f"{1000 * median(turn.step_seconds for turn in self.turns):,.1f}",
            f"{self.step:,}",
            f"{1e6 * median(turn.processor for turn in self.turns) / edges:.2f}",
            f"{max(turn.state for turn in self.turns) / 1000:,.1f}",
        ]


def measure_ank1(flows: Sequence[Flow], parallel: Sequence[int], edges: int, repeat: int, say: Say) -> Iterator[Rate]:
    """ANK-1 as a worker runs it: each step taken up, told as messages and put away; queries spread over processes."""
    for flow in flows:
        results = max(STEP, edges // (flow.size * flow.queries))
        for processes in parallel:
            if processes > flow.queries:
                continue
            turns = []
            for turn in range(repeat):
                say(
                    f"ANK-1, {flow.queries} queries of {flow.size} at {flow.overlap} %, in {processes}, turn {turn + 1}"
                )
                turns.append(_spread_out(flow, results, processes))
            total = results * flow.queries
            step = min(STEP, results) * flow.queries
            yield Rate(way="ANK-1", parallel=processes, flow=flow, results=total, step=step, turns=turns)


def measure_native(flows: Sequence[Flow], parallel: Sequence[int], edges: int, repeat: int, say: Say) -> Iterator[Rate]:
    """ANK-N on Structured Streaming, by an application of its own."""
    command = [sys.executable, "-m", "spark_apps.bench.live", "rates", f"--edges={edges}", f"--repeat={repeat}"]
    command += [f"--flow={msgspec.json.encode(flow).decode()}" for flow in flows]
    command += [f"--parallel={count}" for count in parallel]
    for told in listen(command, "The benchmark", say):
        if "row" in told:
            yield msgspec.convert(told["row"], Rate)


def _spread_out(flow: Flow, results: int, processes: int) -> Turn:
    if processes == 1:
        return run_bucket(flow, results, range(flow.queries))
    shares = [range(bucket, flow.queries, processes) for bucket in range(processes)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        # Processes that have begun and read the code are what is measured.
        list(pool.map(run_bucket, [flow] * processes, [STEP] * processes, shares))
        turns = list(pool.map(run_bucket, [flow] * processes, [results] * processes, shares))
    return Turn(
        seconds=max(turn.seconds for turn in turns),
        step_seconds=max(turn.step_seconds for turn in turns),
        processor=sum(turn.processor for turn in turns),
        state=sum(turn.state for turn in turns),
    )


def run_bucket(flow: Flow, results: int, queries: range) -> Turn:
    """One bucket, with some of the queries; that results are made is not measured."""
    state: bytes | None = None
    seconds, processor, most = [], 0.0, 0
    for number, (watermark, made) in enumerate(flow.steps(results, STEP, queries)):
        begin, used = time.perf_counter(), time.process_time()
        live = Live(flow.reach, state)
        elements = live.take(watermark, made) + live.advance(watermark)
        facts = {"run": "bench", "query": "bench", "bucket": 0, "step": number, "reach": flow.reach}
        for message in split_step(elements, watermark=watermark, **facts):  # type: ignore[arg-type]
            message.to_message()
        state = live.put_away()
        seconds.append(time.perf_counter() - begin)
        processor += time.process_time() - used
        most = max(most, len(state))
    return Turn(seconds=sum(seconds), step_seconds=sum(seconds) / len(seconds), processor=processor, state=most)
