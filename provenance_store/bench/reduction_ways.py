"""The ways of reducing that `headwater bench reduce` compares, and the process of its own that each is measured in."""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa

from provenance_store.model.ids import LAKE_PREFIX
from provenance_store.model.message import MANIFEST, Message
from provenance_store.transport.port import Received

# From messages in memory to a table of output and input; None for a way that is only a part of it.
Way: TypeAlias = Callable[[Sequence[Message]], pa.Table | None]

WARM_UP_TWEETS = 5000
_BATCH = 100


def reduce_natively(messages: Sequence[Message]) -> pa.Table:
    """The library."""
    from provenance_store.reduction.exact import reduce_messages  # noqa: PLC0415 - importing it is measured

    (reduced,) = reduce_messages(Received(message, 0, number) for number, message in enumerate(messages))
    return reduced.graph.to_arrow()


def reduce_batches_locally(messages: Sequence[Message]) -> None:
    """The library's local step, as a worker of a Kafka partition takes it: batches to tables of hashes and names."""
    from provenance_store.reduction.local import reduce_locally  # noqa: PLC0415 - importing it is measured

    for begin in range(0, len(messages), _BATCH):
        batch = messages[begin : begin + _BATCH]
        local = reduce_locally(batch, range(begin, begin + len(batch)))
        local.edges().to_arrow()
        local.names().to_arrow()


def reduce_by_joins(messages: Sequence[Message]) -> pa.Table:
    """The way one would first write it: JSON to dictionaries, joins over strings until only records are left."""
    used: tuple[list[str], list[str]] = [], []
    made: tuple[list[str], list[str]] = [], []
    members: tuple[list[str], list[str]] = [], []
    kinds = (
        (used, "used", "prov:activity", "prov:entity"),
        (made, "wasGeneratedBy", "prov:entity", "prov:activity"),
        (members, "hadMember", "prov:collection", "prov:entity"),
    )
    for message in messages:
        if message.headers["kind"] == MANIFEST:
            continue
        document = msgspec.json.decode(message.value)
        for (dependents, dependencies), relation, first, second in kinds:
            records = document.get(relation, {}).values()
            dependents += [record[first] for record in records]
            dependencies += [record[second] for record in records]
    used_table = pl.DataFrame(dict(zip(("activity", "input"), used, strict=True)))
    made_table = pl.DataFrame(dict(zip(("output", "activity"), made, strict=True)))
    held = pl.DataFrame(dict(zip(("output", "input"), members, strict=True)), schema=dict.fromkeys(_GRAPH, pl.String))
    links = pl.concat([made_table.join(used_table, on="activity").select(_GRAPH), held]).unique()
    frontier = links.filter(pl.col("output").str.starts_with(LAKE_PREFIX))
    onward = links.rename({"output": "input", "input": "further"})
    found = [frontier.clear()]
    while frontier.height:
        ends = pl.col("input").str.starts_with(LAKE_PREFIX)
        found.append(frontier.filter(ends))
        frontier = frontier.filter(~ends).join(onward, on="input").select("output", input="further").unique()
    return pl.concat(found).unique().sort("input", "output").to_arrow()


_GRAPH = ("output", "input")
WAYS: dict[str, Way] = {
    "whole reduction": reduce_natively,
    "local step alone": reduce_batches_locally,
    "objects and string joins": reduce_by_joins,
}
BASELINE = "objects and string joins"


def measure(name: str, tweets: int, repeat: int) -> dict[str, Any]:
    """Reduce the stream of so many tweets so often; what it took, and whether the result is the true one."""
    from provenance_store.bench.hashtag_stream import HashtagStream  # noqa: PLC0415 - native code too

    way = WAYS[name]
    first = _timed(way, list(HashtagStream(WARM_UP_TWEETS)))[1]
    stream = HashtagStream(tweets)
    messages = list(stream)
    before = _resident_bytes()
    turns = [_timed(way, messages)]
    # After the first turn, because the results of all are kept until they are checked.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    turns += [_timed(way, messages) for _ in range(repeat - 1)]
    results = [result for result, *_ in turns if result is not None]
    truth = stream.dependencies() if results else None
    return {
        "way": name,
        "tweets": tweets,
        "messages": len(messages),
        "edges": sum(message.value.count(b'"_:') for message in messages),
        "bytes": sum(len(message.value) for message in messages),
        "wall": [wall for _, wall, _ in turns],
        "processor": [processor for *_, processor in turns],
        "first_call": first,
        "memory": max(peak - before, 0),
        "exact": None if truth is None else all(truth.equals(pl.DataFrame(result)) for result in results),
    }


def _timed(way: Way, messages: Sequence[Message]) -> tuple[pa.Table | None, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    result = way(messages)
    return result, time.perf_counter() - wall, time.process_time() - processor


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(arguments: list[str] | None = None) -> int:
    """Measure one way, and tell it in a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m provenance_store.bench.reduction_ways")
    parser.add_argument("--way", required=True, choices=WAYS)
    parser.add_argument("--tweets", required=True, type=int)
    parser.add_argument("--repeat", required=True, type=int)
    chosen = parser.parse_args(arguments)
    sys.stdout.write(json.dumps(measure(chosen.way, chosen.tweets, chosen.repeat)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
