"""Follows the live provenance of stream queries: from topics into the lake graph, each message once.

Offsets are committed after the transactions, so whatever is killed, what was not confirmed comes again; the lake graph
knows what it has. What cannot be taken in is put aside with the reason, and its run is said to be partial.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from provenance_store.errors import InputError
from provenance_store.graph.live import Applied
from provenance_store.settings import Settings
from provenance_store.streams.live_messages import LiveMessage, read_message, topic_of
from provenance_store.transport.deadletters import send_rejected
from provenance_store.transport.following import Followed, KafkaFollower, Quiet

TOPICS = (topic_of("*"),)
GROUP = "headwater.live"
# So much of a bucket goes into one transaction, or a single message.
_MOST_ELEMENTS = 20_000
_LOOK_SECONDS = 1.0


class Graph(Protocol):
    """Where it is written to; `LakeGraph` is one."""

    def ensure_schema(self) -> None:
        """Make ready what is written to."""

    def apply_live(self, messages: Sequence[LiveMessage]) -> Applied:
        """Take in messages of one bucket."""

    def doubt_live(self, run: str) -> None:
        """Say that something of a run is missing."""


class Progress(msgspec.Struct):
    """How far it is: messages and their elements that were taken in, and what was not; `lag` is still to be read."""

    messages: int = 0
    elements: int = 0
    repeated: int = 0
    late: int = 0
    rejected: int = 0
    lag: int = 0

    def add(self, applied: Applied) -> None:
        """Count what was done."""
        self.messages += applied.messages
        self.elements += applied.elements
        self.repeated += applied.repeated
        self.late += applied.late

    def __str__(self) -> str:
        told = f"{self.messages:,} messages with {self.elements:,} elements, {self.lag:,} messages behind"
        others = {"repeated": self.repeated, "late": self.late, "rejected": self.rejected}
        return ", ".join([told, *(f"{count:,} {name}" for name, count in others.items() if count)])


class _Read(NamedTuple):
    """A message, and what it says."""

    followed: Followed
    live: LiveMessage


class _Refused(NamedTuple):
    """A message that cannot be taken in, and why."""

    followed: Followed
    reason: str


def follow_live(
    settings: Settings,
    graph: Graph,
    topics: Sequence[str] = TOPICS,
    *,
    group: str = GROUP,
    stopped: Callable[[], bool] = lambda: False,
    until_quiet: float | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Take in what is told until someone asks for the end, or nothing has come for so many seconds.

    Started several times, the partitions of the topics are shared.
    """
    graph.ensure_schema()
    progress, quiet, look = Progress(), Quiet(until_quiet), Quiet(_LOOK_SECONDS)
    with KafkaFollower(settings, topics or TOPICS, group) as follower:
        while not stopped():
            came = follower.poll()
            if came:
                quiet.heard()
                refused = list(take(graph, came, progress))
                put_aside(settings, graph, refused)
                follower.commit(came)  # where that fails, another member has them, and finds them taken in
            elif follower.is_joining():
                quiet.heard()
            if look() or quiet():
                look.heard()
                progress.lag = follower.lag()
                tell(progress)
                if quiet() and not progress.lag:
                    break
    return progress


def take(graph: Graph, came: Iterable[Followed], progress: Progress) -> Iterator[_Refused]:
    """Take in messages, each bucket's in their order; those that cannot be."""
    buckets: dict[tuple[str, int], list[_Read]] = {}
    for followed in came:
        try:
            live = read_message(followed.message)
        except InputError as error:
            progress.rejected += 1
            yield _Refused(followed, str(error))
        else:
            buckets.setdefault((live.run, live.bucket), []).append(_Read(followed, live))
    for bucket in buckets.values():
        for part in _parts(bucket):
            yield from _apply(graph, part, progress)


def put_aside(settings: Settings, graph: Graph, refused: Sequence[_Refused]) -> None:
    """Keep what cannot be taken in where someone can look at it, and have its run say that it lacks something."""
    for topic in sorted({one.followed.topic for one in refused}):
        letters = [(one.followed, one.reason) for one in refused if one.followed.topic == topic]
        send_rejected(settings, topic, [(it.partition, it.offset, (it.message, why)) for it, why in letters])
    for run in sorted({one.followed.message.headers.get("run", "") for one in refused} - {""}):
        graph.doubt_live(run)


def _apply(graph: Graph, part: Sequence[_Read], progress: Progress) -> Iterator[_Refused]:
    try:
        progress.add(graph.apply_live([one.live for one in part]))
    except InputError as error:
        if len(part) == 1:
            progress.rejected += 1
            yield _Refused(part[0].followed, str(error))
            return
        for one in part:
            yield from _apply(graph, [one], progress)


def _parts(bucket: Sequence[_Read]) -> Iterator[list[_Read]]:
    part: list[_Read] = []
    elements = 0
    for one in bucket:
        if part and elements + len(one.live.elements) > _MOST_ELEMENTS:
            yield part
            part, elements = [], 0
        part.append(one)
        elements += len(one.live.elements)
    if part:
        yield part
