"""Live provenance of the papers' queries is what brute force says: in any order, any batches, over any buckets."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provenance_store.lake.records import read_line
from provenance_store.streams.engine import Arrival
from provenance_store.streams.examples import EXAMPLES, Example
from provenance_store.streams.execution import run_locally
from provenance_store.streams.live import Edge, Element, SinkVertex
from provenance_store.streams.operators import Process
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.telling import Expiry
from tests.live_checks import assert_told_once_in_order, in_order
from tests.property.test_stream_examples import arrivals
from tests.stream_examples import Found, as_told
from tests.stream_oracles import ORACLES

RUN = "live-1"


def put(example: Example, lake: Path, events: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Events into the lake, and the number of each by its position."""
    folder = lake / example.query.sources[0].dataset / "v"
    folder.mkdir(parents=True)
    lines = [json.dumps(event).encode() + b"\n" for event in events]
    (folder / "f").write_bytes(b"".join(lines))
    return {sum(map(len, lines[:number])): number for number in range(len(lines))}


def told(example: Example, lake: Path, numbers: dict[int, int], edges: Iterable[tuple[str, str | None]]) -> Found:
    """Results with the numbers of their sources, by pairs of ids; contents from the lake."""
    streams = {sink.dataset: sink.stream for sink in example.query.sinks}
    behind: dict[str, set[int]] = {}
    for result, source in edges:
        behind.setdefault(result, set())
        if source is not None:
            behind[result].add(numbers[int(source.rpartition("#")[2])])
    results: dict[str, list[tuple[Any, frozenset[int]]]] = {stream: [] for stream in streams.values()}
    for result, sources in behind.items():
        dataset = result.removeprefix("lake:").partition("/")[0]
        results[streams[dataset]].append((json.loads(read_line(lake, result))["content"], frozenset(sources)))
    return as_told(results)


def batches_of(
    example: Example, events: Sequence[dict[str, Any]], numbers: dict[int, int], size: int
) -> list[tuple[list[Arrival], int]]:
    (source,) = example.query.sources
    arrived = [Arrival(source.name, e["time"], ("v/f", at), 0, e) for at, e in zip(numbers, events, strict=True)]
    batches, until = [], 0
    for first in range(0, len(arrived), size):
        some = arrived[first : first + size]
        until = max([until, *(one.time - source.lateness for one in some)])
        batches.append((some, until))
    return batches


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=6)
@given(st.data())
def test_live_provenance_is_what_brute_force_says(name: str, data: st.DataObject) -> None:
    example = EXAMPLES[name]
    events = data.draw(arrivals(example))
    expected = as_told(ORACLES[name](events))
    size, buckets = data.draw(st.integers(5, 200)), data.draw(st.integers(1, 3)) if example.by else 1
    expiry: Expiry = data.draw(st.sampled_from(["exact", "reach"]))
    with tempfile.TemporaryDirectory() as scratch:
        home, lake = Path(scratch), Path(scratch) / "lake"
        numbers = put(example, lake, events)
        batches = batches_of(example, events, numbers, size)
        _, messages = run_locally(home, lake, example.query, RUN, batches, buckets=buckets, live=expiry)
        elements = list(in_order(messages))
        assert_told_once_in_order(elements)
        assert told(example, lake, numbers, edges_of(elements)) == expected
        if not any(isinstance(one, Process) for one in example.query.operators):
            # The same from keys, and from a replay where they leave several possibilities.
            run = StreamRun(lake, RUN)
            ids = [one for sink in example.query.sinks for one in run.results(sink.dataset)["id"].to_list()]
            links = run.backward(ids, replayed=True)
            assert all(links.exact)
            pairs = zip(links.outputs, links.inputs, strict=True)
            assert told(example, lake, numbers, [*((one, None) for one in ids), *pairs]) == expected


def edges_of(elements: Iterable[Element]) -> Iterator[tuple[str, str | None]]:
    for one in elements:
        if isinstance(one, SinkVertex):
            yield one.id, None
        elif isinstance(one, Edge):
            yield one.output, one.input
