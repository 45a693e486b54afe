"""Live provenance on its way: the elements of a bucket's step as messages, and each taken once.

A bucket's messages stand in one partition, in order, and their (step, part) only rise. A step that is made again after
a crash has the same content, and so the same messages; whoever has seen one of them, or a later one, drops it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec

from provenance_store.errors import MessageError
from provenance_store.model.message import SCHEMA, Message
from provenance_store.streams.live import Element

LIVE = "live"
MOST_ELEMENTS = 5_000

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class LiveMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a bucket tells in one step, with the watermark that the step came to and the query's U."""

    run: str
    query: str
    bucket: _Count
    step: _Count
    part: _Count
    watermark: int
    reach: _Count | None
    elements: Sequence[Element]
    # What the query reads, so that it is known before any result is told: datasets, or versions of them.
    reads: Sequence[str] = []

    @property
    def key(self) -> str:
        """What Kafka chooses a partition by."""
        return f"{self.run}/{self.bucket}"

    def to_message(self) -> Message:
        """As a transport carries it; the same elements give the same bytes."""
        headers = {"run": self.run, "query": self.query, "kind": LIVE, "schema": SCHEMA}
        return Message(headers, _ENCODER.encode(self))


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(LiveMessage)


def topic_of(query: str) -> str:
    """The topic that a query's live provenance is sent to."""
    return f"headwater.live.{query}"


def split_step(
    elements: Sequence[Element],
    *,
    run: str,
    query: str,
    bucket: int,
    step: int,
    watermark: int,
    reach: int | None,
    reads: Sequence[str] = (),
) -> Iterator[LiveMessage]:
    """The messages of a step: one at least, since how far it came is told too."""
    for part, first in enumerate(range(0, max(1, len(elements)), MOST_ELEMENTS)):
        yield LiveMessage(
            run=run,
            query=query,
            bucket=bucket,
            step=step,
            part=part,
            watermark=watermark,
            reach=reach,
            reads=list(reads),
            elements=elements[first : first + MOST_ELEMENTS],
        )


def read_message(message: Message) -> LiveMessage:
    """What a message says; MessageError where it is none of live provenance."""
    headers = message.headers
    if (kind := headers.get("kind")) != LIVE:
        raise MessageError(f"A message of kind {kind!r} is none of live provenance, whose kind is {LIVE!r}.")
    if (schema := headers.get("schema", SCHEMA)) != SCHEMA:
        raise MessageError(f"message schema {schema!r} is not known here; this release reads schema {SCHEMA!r}.")
    try:
        read = _DECODER.decode(message.value)
    except msgspec.MsgspecError as error:
        raise MessageError(f"A live message of run {headers.get('run')!r} cannot be read: {error}.") from None
    if (named := headers.get("run", read.run)) != read.run:
        raise MessageError(f"A live message is of run {named!r} by its headers and of {read.run!r} by its value.")
    return read


class Once:
    """Lets each message of a bucket pass once. `seen` is the last (step, part) of each (run, bucket)."""

    def __init__(self, seen: Mapping[tuple[str, int], tuple[int, int]] | None = None) -> None:
        self.seen = dict(seen or {})

    def is_new(self, message: LiveMessage) -> bool:
        """Whether neither it nor a later one of its bucket was seen before; from now on it was."""
        bucket, place = (message.run, message.bucket), (message.step, message.part)
        if place <= self.seen.get(bucket, (-1, -1)):
            return False
        self.seen[bucket] = place
        return True
