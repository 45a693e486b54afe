"""Paper 003, Figure 15: the time of a fixed stream with one local reducer a partition, each a process of its own."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.bench.paper_sizes import read_provenance, reduce_globally
from provenance_store.model.message import Message
from provenance_store.reduction.strategies.elements import read_elements
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Element
from provenance_store.reduction.strategies.stages import GLOBAL_BATCH, LOCAL_BATCH, Stage
from provenance_store.services.service import Say
from provenance_store.transport.partitioning import vertical
from provenance_store.transport.recording import RecordingSink, RecordingSource


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """So many local reducers: seconds of each turn.

    For the local step, for it with the global one, and of processor time for the local reducer that took most of it.
    """

    processes: int
    megabytes: float
    local: list[float]
    total: list[float]
    processor: list[float]

    @property
    def rate(self) -> float:
        """Megabytes a second in each partition, local step alone."""
        return self.megabytes / self.processes / median(self.local)


class _Turn(NamedTuple):
    local: float
    total: float
    processor: float


def measure_speedup(tweets: int, *, most: int, repeat: int, say: Say) -> list[Speed]:
    """The same stream with 1, 2… local reducers; partitions are vertical and batches the paper's."""
    messages = read_provenance(HashtagStream(tweets))
    megabytes = sum(len(message.value) for message in messages) / 1e6
    turns: dict[int, list[_Turn]] = {processes: [] for processes in range(1, most + 1)}
    with TemporaryDirectory() as folder:
        files = {processes: _write_partitions(messages, processes, Path(folder)) for processes in turns}
        # In turns, so that whatever else the machine does meets all of them alike.
        for turn in range(repeat):
            for processes, measured in turns.items():
                say(f"Speedup: turn {turn + 1}, {processes} local reducers")
                measured.append(_measure(files[processes]))
    return [
        Speed(
            processes=processes,
            megabytes=megabytes,
            local=[turn.local for turn in measured],
            total=[turn.total for turn in measured],
            processor=[turn.processor for turn in measured],
        )
        for processes, measured in turns.items()
    ]


def _write_partitions(messages: list[Message], partitions: int, folder: Path) -> list[Path]:
    files = [folder / f"{partition}-of-{partitions}.jsonl" for partition in range(partitions)]
    sinks = [RecordingSink(file) for file in files]
    for message in messages:
        sinks[vertical(message.headers, partitions)].send(message)
    for sink in sinks:
        sink.close().check()
    return files


def _measure(files: list[Path]) -> _Turn:
    with ProcessPoolExecutor(len(files), mp_context=get_context("spawn")) as pool:
        # Processes are started, and have imported what they need, before time is taken.
        list(pool.map(_start, [0.5] * len(files)))
        started = time.monotonic()
        reduced = list(pool.map(_reduce_partition, files))
        local = time.monotonic() - started
        reduce_globally([group for groups, _ in reduced for group in groups], GLOBAL_BATCH)
        return _Turn(local, time.monotonic() - started, max(processor for _, processor in reduced))


def _reduce_partition(file: Path) -> tuple[list[Element], float]:
    """A local reducer: what it flushes of its partition, and the processor time that it took."""
    started = time.process_time()
    stage = Stage(Grouping(), LOCAL_BATCH)
    messages = (received.message for received in RecordingSource(file))
    flushed = [group for element in read_elements(messages) for group in stage.add(element)]
    return flushed + stage.end(), time.process_time() - started


def _start(seconds: float) -> None:
    """Wait for so long that every process gets one of these; this module is imported by then."""
    time.sleep(seconds)
