"""Kafka producer and consumer, each pinned to one core: many executions a message, beside one edge a message."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from provenance_store.bench.spread import spread
from provenance_store.model.document import RelationName, write_document
from provenance_store.model.message import Headers, Message
from provenance_store.settings import Settings
from provenance_store.transport.emitter import Emitter
from provenance_store.transport.kafka import KafkaTransport
from provenance_store.transport.port import Delivery

EDGES_PER_EXECUTION = 3
# One edge a message is so much slower that a fraction of the edges tells its rate.
BASELINE_FRACTION = 20


@dataclass
class Row:
    """One way of sending or reading, measured several times."""

    name: str
    messages: int
    edges: int
    bytes: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def edges_per_second(self) -> str:
        """Edges a second of wall-clock time."""
        return spread([self.edges / seconds for seconds in self.wall], ",.0f")

    @property
    def megabytes_per_second(self) -> str:
        """Megabytes of PROV-JSON a second of wall-clock time."""
        return spread([self.bytes / 1e6 / seconds for seconds in self.wall])

    @property
    def per_core(self) -> str:
        """Megabytes of PROV-JSON a second of processor time, which a busy machine disturbs less."""
        return spread([self.bytes / 1e6 / seconds for seconds in self.cpu])

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "name": self.name,
            "messages": self.messages,
            "edges": self.edges,
            "bytes": self.bytes,
            "wall_seconds": self.wall,
            "cpu_seconds": self.cpu,
            "megabytes_per_second": [self.bytes / 1e6 / seconds for seconds in self.wall],
        }


def measure_transport(settings: Settings, executions: int, repeat: int) -> list[Row]:
    """Every way, `repeat` times, interleaved so that a noisy minute disturbs all of them alike."""
    ways: list[tuple[str, Callable[..., Iterator[Message]], int]] = [
        ("many executions a message", _batched, executions),
        ("one edge a message", _one_edge_each, executions // BASELINE_FRACTION),
    ]
    rows: dict[str, Row] = {}
    for _ in range(repeat):
        for name, make, count in ways:
            topic = f"headwater.bench-{uuid.uuid4().hex[:12]}"
            # A fresh process each time, on one core of its own: the broker and we must not share one.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                for step in (_send, _read):
                    title = f"{'send' if step is _send else 'read'}, {name}"
                    messages, size, wall, cpu = pool.submit(step, settings, topic, make, count).result()
                    row = rows.setdefault(title, Row(title, messages, count * EDGES_PER_EXECUTION, size))
                    row.wall.append(wall)
                    row.cpu.append(cpu)
            KafkaTransport(settings).delete_topic(topic)
    return list(rows.values())


def _send(settings: Settings, topic: str, make: Callable[..., Iterator[Message]], count: int) -> tuple[Any, ...]:
    _pin_to_one_core()
    messages = list(make(count))
    sink = KafkaTransport(settings).sink(topic)
    wall, cpu = time.perf_counter(), time.process_time()
    for message in messages:
        sink.send(message)
    sink.close().check()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return len(messages), sum(len(message.value) for message in messages), wall, cpu


def _read(settings: Settings, topic: str, make: object, count: int) -> tuple[Any, ...]:
    del make, count  # the same shape as _send
    _pin_to_one_core()
    source = KafkaTransport(settings).source(topic)
    wall, cpu = time.perf_counter(), time.process_time()
    sizes = [len(received.message.value) for received in source]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    source.close()
    return len(sizes), sum(sizes), wall, cpu


def _batched(executions: int) -> Iterator[Message]:
    kept: list[Message] = []
    emitter = Emitter(_Keep(kept), _headers(0))
    for number in range(executions):
        emitter.emit(f"run:m{number}", [_tweet(number)], [f"run:m{number}.0", f"run:m{number}.1"])
    emitter.flush()
    yield from kept


def _one_edge_each(executions: int) -> Iterator[Message]:
    for number in range(executions):
        activity = f"run:m{number}"
        edges: list[tuple[RelationName, str, str]] = [
            ("used", activity, _tweet(number)),
            ("wasGeneratedBy", f"{activity}.0", activity),
            ("wasGeneratedBy", f"{activity}.1", activity),
        ]
        for place, edge in enumerate(edges):
            yield Message.of(_headers(number * EDGES_PER_EXECUTION + place), write_document("bench", [edge]))


def _tweet(number: int) -> str:
    return f"lake:tweets/n1000000-s1/part-00000.jsonl#{number * 211}"


def _headers(seq: int) -> Headers:
    return Headers(run="bench", dic="bench", attempt="a0", seq=seq, task="t0", function="map", node="n0")


class _Keep:
    """A sink that keeps messages, so that building them is not timed as sending them."""

    def __init__(self, kept: list[Message]) -> None:
        self._kept = kept

    def send(self, message: Message) -> None:
        self._kept.append(message)

    def close(self, timeout: float | None = None) -> Delivery:
        del timeout
        return Delivery(len(self._kept), 0)


def _pin_to_one_core() -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
