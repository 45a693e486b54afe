"""`python -m spark_apps.bench.capture [--rows N] [--tweets N] [--repeat N] [--case NAME …]`.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each case, which
holds an `error` where the case failed, or `{"error": …, "kind": …}` where nothing could be measured.

Both ways of a job take turns in one process after a warm-up of each. Memory is measured in processes of their own,
`--memory plain|captured`, because a JVM keeps what it once took.
"""

import argparse
import contextlib
import os
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from provenance_store.errors import HeadwaterError, InputError, JobError
from provenance_store.services.application import listen, tell, tell_failure, tell_progress
from provenance_store.settings import Settings, load_settings
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.wiring import topic_of
from spark_apps.bench.cases import CASES, Case, World, clean
from spark_apps.bench.usage import PeakMemory, processor_seconds

_TAIL = 1500


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    given = _parser().parse_args(arguments)
    return tell_failure(lambda: _measure_all(given))


def _measure_all(given: argparse.Namespace) -> None:
    world = World(_settings(load_settings()), given.rows, given.tweets, tell_progress)
    for name in given.case or CASES:
        if given.memory:
            tell(peak=_peak(world, CASES[name], captured=given.memory == "captured"))
        else:
            tell(row=_measure_or_tell(world, name, given.repeat))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.capture")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--tweets", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--memory", choices=["plain", "captured"])
    return parser


def _settings(settings: Settings) -> Settings:
    """The user's own, but for a home and a lake of the benchmark's, where runs leave nothing behind."""
    if settings.recordings is not None:
        raise InputError("The benchmark sends to Kafka: take the setting `recordings` away.")
    home = settings.home.absolute() / "bench"
    return settings.model_copy(update={"home": home, "lake": home / "lake"})


def _measure_or_tell(world: World, name: str, repeat: int) -> dict[str, Any]:
    row: dict[str, Any] = {"case": name, "load": round(os.getloadavg()[0], 2)}
    try:
        return row | _measure(world, name, repeat)
    except Exception as error:  # a case that fails is a row of the table, and the others are measured
        return row | {"error": f"{type(error).__name__}: {error}"[-_TAIL:]}


def _measure(world: World, name: str, repeat: int) -> dict[str, Any]:
    case = CASES[name]
    records = case.records(world)
    dic = _new_dic()
    plain: list[tuple[float, float]] = []
    captured: list[tuple[float, float]] = []
    sizes: list[tuple[int, int]] = []
    for turn in range(repeat + 1):
        tell_progress(f"{name}: {'warm-up' if turn == 0 else f'{turn} of {repeat}'}")
        clean(world)
        without = _timed(lambda: case.plain(world))
        timing, size = _capture(world, case, dic)
        if turn:
            plain.append(without)
            captured.append(timing)
            sizes.append(size)
    _delete_topic(world, dic)
    tell_progress(f"{name}: memory")
    memory = [_peak_of_its_own(world, name, way) for way in ("plain", "captured")]
    return {
        "records": records,
        "seconds_without": [wall for wall, _ in plain],
        "seconds_with": [wall for wall, _ in captured],
        "processor_without": [cpu for _, cpu in plain],
        "processor_with": [cpu for _, cpu in captured],
        "messages": sizes[-1][0],
        "bytes": sizes[-1][1],
        "memory_without": memory[0],
        "memory_with": memory[1],
    }


def _new_dic() -> str:
    """A DIC of the case's own. Its topic is made at the warm-up, as a real one's is at its first run."""
    return f"bench-{uuid.uuid4().hex[:12]}"


def _delete_topic(world: World, dic: str) -> None:
    with contextlib.suppress(HeadwaterError):
        KafkaTransport(world.settings).delete_topic(topic_of(dic))


def _capture(world: World, case: Case, dic: str) -> tuple[tuple[float, float], tuple[int, int]]:
    """One captured run; its time, and what it sent."""
    run = f"run-{uuid.uuid4().hex[:12]}"
    try:
        timing = _timed(lambda: case.captured(world, dic, run))
        case.check(world, run)
        with KafkaTransport(world.settings).source(topic_of(dic)) as source:
            told = [one.message for one in source if one.message.headers["run"] == run]
        sizes = [len(one.value) for one in told if one.headers["kind"] == "provenance"]
    finally:
        clean(world, run)
    return timing, (len(sizes), sum(sizes))


def _timed(job: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time of all that was started for it."""
    wall, cpu = time.perf_counter(), processor_seconds()
    job()
    return time.perf_counter() - wall, processor_seconds() - cpu


def _peak(world: World, case: Case, *, captured: bool) -> int:
    """The most memory that the engine's processes held while the job ran once, cold."""
    clean(world)
    case.records(world)
    with PeakMemory() as memory:
        if captured:
            dic = _new_dic()
            _capture(world, case, dic)
            _delete_topic(world, dic)
        else:
            case.plain(world)
    clean(world)
    return memory.peak


def _peak_of_its_own(world: World, name: str, way: str) -> int:
    command = [sys.executable, "-m", __spec__.name, f"--rows={world.rows}", f"--tweets={world.tweets}"]
    told = listen([*command, f"--case={name}", f"--memory={way}"], f"Memory of {name}, {way},", lambda _: None)
    for line in told:
        if "peak" in line:
            return int(line["peak"])
    raise JobError(f"Memory of {name}, {way}, could not be measured.")


if __name__ == "__main__":
    sys.exit(main())
