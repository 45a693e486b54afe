"""`python -m spark_apps.bench.pipeline [--tweets N …] [--repeat N] [--once]`: Kafka → Spark → `graph.parquet`.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each turn, or
`{"error": …, "kind": …}`. The reducer is the application that `headwater reduce` starts, in processes of its own; its
account tells the seconds from the first message read to the graph closed, without the start of the JVM.
"""

import argparse
import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.errors import JobError
from provenance_store.model.account import Account
from provenance_store.services import lifecycle
from provenance_store.services.application import listen, tell, tell_failure, tell_progress
from provenance_store.services.kafka import Kafka
from provenance_store.settings import Settings, load_settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.bench.usage import ByOthers, PeakDisk, PeakMemory

_MEMORY = "1536m"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.pipeline")
    parser.add_argument("--tweets", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args(arguments)
    return tell_failure(lambda: _measure_all(given))


def _measure_all(given: argparse.Namespace) -> None:
    sizes = given.tweets or [200_000, 1_000_000]
    settings = load_settings()
    for turn in range(1, given.repeat + 1):
        for tweets in sizes:
            tell(row={"turn": turn, **_measure(settings, tweets, cores=2, beside=False)})
        if given.once:
            continue
        for with_broker in (False, True):
            tell(row={"turn": turn, **_measure(settings, sizes[-1], cores=1, beside=False, with_broker=with_broker)})
        tell(row={"turn": turn, **_measure(settings, sizes[-1], cores=2, beside=True)})


def _measure(settings: Settings, tweets: int, *, cores: int, beside: bool, with_broker: bool = False) -> dict[str, Any]:
    """One reduction with as many partitions as cores: after the stream was sent, or while it is being sent.

    Without the broker on its cores, one core has a second one to help it: that which reads the topic for it.
    """
    parted = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": cores})})
    topic = f"bench-{uuid.uuid4().hex[:12]}"
    out = settings.home.absolute() / "bench" / topic
    what = f"{tweets:,} tweets on {cores} cores{', beside the job' if beside else ''}"
    stream = HashtagStream(tweets)
    transport = KafkaTransport(parted)
    try:
        transport.ensure_topics(topic)
        sent: dict[str, float] = {}
        sender = threading.Thread(target=_send, args=(transport, topic, stream, sent))
        if not beside:
            tell_progress(f"{what}: sending the stream")
            sender.start()
            sender.join()
        tell_progress(f"{what}: reducing")
        broker = lifecycle.status(Kafka(settings)).pid
        with PeakMemory() as memory, PeakDisk(settings.home.absolute()) as disk, ExitStack() as held:
            others = held.enter_context(ByOthers(*([broker] if broker else [])))
            held.enter_context(_on_cores(cores))
            if with_broker:
                held.enter_context(_broker_on_cores(broker, cores))
            # Beside the job: the reducer is there when the job begins to tell, as its service is.
            ended = _reduce(topic, out, cores, wait=600.0 if beside else 0.0, waits=sender.start if beside else None)
        sender.join()
        account = Account.read(out)
        return {
            "tweets": tweets,
            "cores": cores,
            "beside": beside,
            "with_broker": with_broker,
            "messages": account.messages,
            "bytes": account.bytes,
            "edges_in": account.edges_in,
            "edges_local": account.edges_local,
            "edges_out": account.edges_out,
            "verdict": account.verdict,
            "exact": _is_exact(out, stream),
            "seconds": account.seconds,
            "seconds_after_end": ended - sent["ended"],
            "send_seconds": sent["seconds"],
            "peak": memory.peak,
            "disk": disk.peak,
            "load": round(os.getloadavg()[0], 2),
            "by_others": others.share,
        }
    finally:
        shutil.rmtree(out, ignore_errors=True)
        transport.delete_topic(topic)


def _send(transport: KafkaTransport, topic: str, stream: HashtagStream, sent: dict[str, float]) -> None:
    began = time.monotonic()
    with transport.sink(topic) as sink:
        for message in stream:
            sink.send(message)
    sent["ended"] = time.monotonic()
    sent["seconds"] = sent["ended"] - began


@contextmanager
def _on_cores(cores: int) -> Iterator[None]:
    """Have what is started here run on so many cores, which a JVM and its Python workers else share as they like."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def _broker_on_cores(broker: int | None, cores: int) -> Iterator[None]:
    """Have the local broker, all threads of it, run on so many cores."""
    if broker is None:
        raise JobError("The broker is no local one, so it cannot be kept to a core: `headwater up kafka` starts one.")
    allowed = os.sched_getaffinity(0)
    _pin(broker, sorted(allowed)[:cores])
    try:
        yield
    finally:
        _pin(broker, allowed)


def _pin(process: int, cores: Iterable[int]) -> None:
    chosen = set(cores)
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread.name), chosen)


def _reduce(topic: str, out: Path, cores: int, *, wait: float, waits: Callable[[], None] | None) -> float:
    """Run the reducer to its end; when the graph was there. `waits` is called once it waits for messages."""
    environment = {
        **os.environ,
        "HEADWATER_SPARK__MASTER": f"local[{cores}]",
        "HEADWATER_SPARK__DRIVER_MEMORY": _MEMORY,
    }
    command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topic}", f"--out={out}", f"--wait={wait}"]
    waiting = [] if waits is None else [waits]

    def hear(progress: str) -> None:
        if waiting and progress.startswith("waiting"):
            waiting.pop()()

    told = listen(command, f"The reducer of {topic}", hear, environment)
    ended = [time.monotonic() for line in told if "finished" in line]
    if not ended:
        raise JobError(f"The reducer of {topic} ended without its result.")
    return ended[0]


def _is_exact(out: Path, stream: HashtagStream) -> bool:
    """Whether the graph holds the true dependencies, each once; compared part by part, as it may not fit in memory."""
    graph = out / "graph.parquet"
    files = sorted(graph.iterdir()) if graph.is_dir() else [graph]
    return _digest(map(pl.read_parquet, files)) == _digest(stream.dependencies_by_task())


def _digest(parts: Iterable[pl.DataFrame]) -> tuple[int, int, int]:
    """How many rows, and two sums of their hashes: equal for the same rows in any order and parts."""
    rows, first, second = 0, 0, 0
    for part in parts:
        ordered = part.select("output", "input")
        rows += part.height
        first, second = (
            total + int(ordered.hash_rows(seed).cast(pl.Int128).sum() or 0) for total, seed in ((first, 1), (second, 2))
        )
    return rows, first, second


if __name__ == "__main__":
    sys.exit(main())
