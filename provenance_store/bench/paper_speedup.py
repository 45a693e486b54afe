"""Paper 003, Figure 15: the time of a fixed stream with one local reducer a partition, each a process of its own."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.bench.paper_sizes import read_provenance, reduce_globally
from provenance_store.reduction.strategies.elements import read_elements
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Element
from provenance_store.reduction.strategies.stages import GLOBAL_BATCH, LOCAL_BATCH, Stage
from provenance_store.services.service import Say
from provenance_store.transport.partitioning import vertical
from provenance_store.transport.recording import RecordingSink, RecordingSource


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """So many local reducers: seconds of each turn for the local step, and for it with the global one."""

    processes: int
    megabytes: float
    local: list[float]
    total: list[float]

    @property
    def rate(self) -> float:
        """Megabytes a second in each partition, local step alone."""
        return self.megabytes / self.processes / median(self.local)


def measure_speedup(tweets: int, *, most: int, repeat: int, say: Say) -> list[Speed]:
    """The same stream with 1, 2… local reducers; partitions are vertical and batches the paper's."""
    messages = read_provenance(HashtagStream(tweets))
    megabytes = sum(len(message.value) for message in messages) / 1e6
    rows = []
    for processes in range(1, most + 1):
        with TemporaryDirectory() as folder:
            files = [Path(folder) / f"{partition}.jsonl" for partition in range(processes)]
            sinks = [RecordingSink(file) for file in files]
            for message in messages:
                sinks[vertical(message.headers, processes)].send(message)
            for sink in sinks:
                sink.close().check()
            turns = []
            for turn in range(repeat):
                say(f"Speedup: {processes} processes, turn {turn + 1}")
                turns.append(_measure(files))
        rows.append(
            Speed(
                processes=processes,
                megabytes=megabytes,
                local=[local for local, _ in turns],
                total=[total for _, total in turns],
            )
        )
    return rows


def _measure(files: list[Path]) -> tuple[float, float]:
    with ProcessPoolExecutor(len(files), mp_context=get_context("spawn")) as pool:
        # Processes are started, and have imported what they need, before time is taken.
        list(pool.map(_wait, [0.2] * len(files)))
        started = time.monotonic()
        flushed = [group for groups in pool.map(_reduce_partition, files) for group in groups]
        local = time.monotonic() - started
        reduce_globally(flushed, GLOBAL_BATCH)
        return local, time.monotonic() - started


def _reduce_partition(file: Path) -> list[Element]:
    """A local reducer: reads its partition, reduces it in batches."""
    stage = Stage(Grouping(), LOCAL_BATCH)
    messages = (received.message for received in RecordingSource(file))
    flushed = [group for element in read_elements(messages) for group in stage.add(element)]
    return flushed + stage.end()


def _wait(seconds: float) -> None:
    """Long enough that no process takes the turn of another."""
    time.sleep(seconds)
