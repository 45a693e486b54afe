"""Linear chains of operators with events of a size: what the stream benchmarks run, as paper 000 does."""

import base64
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.lake.layout import new_version, version_of
from provenance_store.streams.engine import Arrival
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import Map
from provenance_store.streams.query import Sink, Source, StreamQuery

DATASET = "bench-events"
VERSION = "v1"
FILES = 4


@register("bench.work")
def _work(content: Any, milliseconds: float) -> Any:
    """Pass an event on after so much work."""
    if milliseconds:
        until = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < until:
            pass
    return content


def chain(components: int, work: float = 0.0) -> StreamQuery:
    """A source, and so many operators one behind the other, each as much work an event as told."""
    function = Function("bench.work", {"milliseconds": work})
    names = ["s", *(f"o{number}" for number in range(components))]
    maps = [Map(name=name, input=before, function=function) for before, name in pairwise(names)]
    return StreamQuery(
        name="chain",
        sources=(Source(name="s", dataset=DATASET),),
        operators=tuple(maps),
        sinks=(Sink(stream=names[-1], dataset="bench-results"),),
    )


def contents(count: int, size: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Events some of which are at one time, each so many bytes of text that does not compress to little."""
    chance = random.Random(seed)  # noqa: S311 - the same events every time
    moment = 1_000_000
    for _ in range(count):
        moment += chance.randrange(3)
        yield {"time": moment, "payload": base64.b85encode(chance.randbytes(size * 4 // 5)).decode()}


def arrivals(count: int, size: int) -> list[Arrival]:
    """The same, on their way in."""
    return [
        Arrival("s", one["time"], (f"{VERSION}/part-0.jsonl", number), 0, one)
        for number, one in enumerate(contents(count, size))
    ]


def write_events(lake: Path, count: int, size: int) -> None:
    """The same as a version of a dataset in several files."""
    lines = [msgspec.json.encode(one) + b"\n" for one in contents(count, size)]
    share = -(-count // FILES)
    with new_version(version_of(lake, DATASET, VERSION), {}) as folder:
        for number in range(FILES):
            (folder / f"part-{number}.jsonl").write_bytes(b"".join(lines[number * share : (number + 1) * share]))
