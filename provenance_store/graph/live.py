"""Keeps the lake graph beside stream queries that are running: what they tell live is in it at once, each thing once.

A bucket of a run tells its vertices, edges and expiries in messages whose (step, part) only rise. The transaction that
writes them also writes how far the bucket has come, and holds its lock meanwhile: so a message that comes again, be it
after a commit of unknown outcome, changes nothing, and nobody ever sees an edge before its ends or after their expiry.

The run is visible from its first message on, and its edges are those of a captured run that is not all there yet. When
it is finished, its declared graph is merged in their place, as any newer graph of a run is; what comes later is late.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from neo4j import ManagedTransaction

from provenance_store.errors import MessageError
from provenance_store.graph.batches import Feeds
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.pruned import PrunedMeanwhileError, count_prunes, inherit, write_between_prunes
from provenance_store.graph.reduced import dataset_name
from provenance_store.graph.schema import check_version, read_version
from provenance_store.model.ids import check_run, version_id_of
from provenance_store.streams.live import Edge, Expired, SourceVertex
from provenance_store.streams.live_messages import LiveMessage

# Neo4j indexes no text of more than 8 kB.
_LONGEST_ID = 4_000
_MOST = 1 << 63


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of messages: taken in with so many elements, seen before, or of a run that was replaced since."""

    messages: int = 0
    elements: int = 0
    repeated: int = 0
    late: int = 0


class _Place(msgspec.Struct, frozen=True, order=True):
    """How far a bucket has come, and which graph of its run it adds to."""

    step: int
    part: int
    revision: int


@dataclass(slots=True)
class Told:
    """What messages of one bucket tell, taken together: what is left to write once all of them are read in order."""

    sources: dict[str, int] = field(default_factory=dict)
    sinks: set[str] = field(default_factory=set)
    edges: list[tuple[str, str]] = field(default_factory=list)
    expired: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, messages: Iterable[LiveMessage]) -> "Told":
        """The elements of the messages; MessageError where one contradicts those before it."""
        told = cls()
        for message in messages:
            for element in message.elements:
                told._take(element)
        return told

    def parameters(self) -> dict[str, Any]:
        """What the statement that writes it takes. Edges are in the order of their inputs, as everywhere."""
        tied = {end for edge in self.edges for end in edge}
        records = sorted({*self.sources, *self.sinks, *tied})
        numbers = {record: number for number, record in enumerate(records)}
        live = {record: time for record, time in self.sources.items() if record not in self.expired}
        edges = sorted((numbers[source], numbers[output]) for output, source in self.edges)
        return {
            "records": records,
            "datasets": [dataset_name(record) for record in records],
            "sources": [numbers[record] for record in live],
            "times": list(live.values()),
            "outputs": [output for _, output in edges],
            "inputs": [source for source, _ in edges],
            "expired": [record for record in self.expired if record not in self.sources],
            "loose": sorted({*self.sources, *self.sinks} - tied),
        }

    def beyond(self) -> dict[str, list[str]]:
        """What only the lake graph can tell of: sources that must be new to it, and ends that must not."""
        return {
            "sources": list(self.sources),
            "inputs": sorted({source for _, source in self.edges} - self.sources.keys()),
            "outputs": sorted({output for output, _ in self.edges} - self.sinks),
        }

    def feeds(self) -> Feeds:
        """How many edges lead from which dataset into which."""
        return Counter((dataset_name(source) or "", dataset_name(output) or "") for output, source in self.edges)

    def reads(self) -> list[str]:
        """The versions that the sources are of."""
        return sorted({version_id_of(record) or record for record in self.sources})

    def _take(self, element: Any) -> None:
        if isinstance(element, Edge):
            for end in (element.output, element.input):
                if end in self.expired:
                    raise MessageError(f"An edge to {end} is told after it has expired.")
            self.edges.append((element.output, element.input))
        elif isinstance(element, Expired):
            self.expired[element.id] = None
        elif dataset_name(element.id) is None:
            raise MessageError(f"{element.id!r} is not a record of the lake: its id would begin with 'lake:'.")
        elif isinstance(element, SourceVertex):
            if element.id in self.sources:
                raise MessageError(f"The source {element.id} is told twice.")
            self.sources[element.id] = element.time
        else:
            self.sinks.add(element.id)


def check_live(message: LiveMessage) -> None:
    """Refuse what no lake graph can hold, wherever it comes from."""
    check_run(message.run)
    numbers = [message.bucket, message.step, message.part, message.watermark, message.reach or 0]
    for element in message.elements:
        numbers.append(element.at)
        if isinstance(element, Edge):
            continue  # its ends are vertices
        if len(element.id) > _LONGEST_ID:
            raise MessageError(f"An id of {len(element.id):,} characters is longer than {_LONGEST_ID:,}.")
        if not isinstance(element, Expired):
            numbers.append(element.time)
    if not -_MOST <= min(numbers) <= max(numbers) < _MOST:
        raise MessageError("A number of this message does not fit 64 bits.")


def apply_live(connection: Connection, messages: Sequence[LiveMessage]) -> Applied:
    """Take in messages of one bucket, in their order and in one transaction; the schema must be there.

    MessageError, and nothing is taken in, where they tell what cannot be.
    """
    run, bucket = messages[0].run, messages[0].bucket
    if any((one.run, one.bucket) != (run, bucket) for one in messages):
        raise MessageError(f"Messages of several buckets cannot be taken in together: {run!r} has others beside them.")
    for message in messages:
        check_live(message)

    def work(tx: ManagedTransaction) -> Applied:
        check_version(read_version(tx))
        place = _lock(tx, messages[0])
        if place is None:
            return Applied(late=len(messages))
        new = _beyond(messages, place)
        if new:
            _write(tx, new, place.revision)
        elements = sum(len(one.elements) for one in new)
        return Applied(messages=len(new), elements=elements, repeated=len(messages) - len(new))

    return write_between_prunes(connection, work)


def doubt_live(connection: Connection, run: str) -> None:
    """Say of a run that goes on that a message of it could not be taken in: what is known of it is partial."""
    connection.write(lambda tx: tx.run(cypher("live_doubt"), run=run).consume())


def _lock(tx: ManagedTransaction, first: LiveMessage) -> _Place | None:
    bucket = {"run": first.run, "bucket": first.bucket}
    row = tx.run(cypher("live_lock"), bucket).single() or tx.run(cypher("live_begin"), bucket, dic=first.query).single()
    return msgspec.convert(row.data(), _Place) if row else None


def _beyond(messages: Iterable[LiveMessage], place: _Place) -> list[LiveMessage]:
    new: list[LiveMessage] = []
    last = (place.step, place.part)
    for one in messages:
        if (one.step, one.part) > last:
            last = (one.step, one.part)
            new.append(one)
    return new


def _write(tx: ManagedTransaction, messages: Sequence[LiveMessage], revision: int) -> None:
    told, last = Told.of(messages), messages[-1]
    bucket = {"run": last.run, "bucket": last.bucket}
    _check(tx, told, bucket)
    parameters = told.parameters()
    before = count_prunes(tx)
    parameters |= inherit(tx, parameters["records"] if before else ())
    tx.run(cypher("live_apply"), parameters | bucket, revision=revision).consume()
    if count_prunes(tx) != before:
        raise PrunedMeanwhileError
    tx.run(
        cypher("live_advance"),
        bucket,
        step=last.step,
        part=last.part,
        watermark=last.watermark,
        reach=last.reach,
        edges=len(told.edges),
        messages=len(messages),
        reads=sorted({*told.reads(), *(one for message in messages for one in message.reads)}),
    ).consume()
    feeds = [[source, target, edges] for (source, target), edges in sorted(told.feeds().items())]
    tx.run(cypher("live_feeds"), run=last.run, dic=last.query, feeds=feeds).consume()


def _check(tx: ManagedTransaction, told: Told, bucket: dict[str, Any]) -> None:
    twice, source, output = tx.run(cypher("live_check"), told.beyond() | bucket).single(strict=True)
    if twice is not None:
        raise MessageError(f"The source {twice} is told twice.")
    if source is not None:
        raise MessageError(f"An edge to {source} is told, which was not told before, or has expired.")
    if output is not None:
        raise MessageError(f"An edge from {output} is told, which was not told before.")
