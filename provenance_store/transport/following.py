"""Kafka's topics as they grow: a member of a consumer group, which says itself up to where it is done.

Members of a group share the partitions, and what one had read and not committed when it went is read by another. So a
message may come again, but never before those that stand before it in its partition.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import CommitFailedError
from kafka.structs import OffsetAndMetadata

from provenance_store.model.message import Message
from provenance_store.transport.kafka import client_options, header_text, telling_unreachable
from provenance_store.transport.port import Closing

if TYPE_CHECKING:
    from provenance_store.settings import Settings

# How soon a topic that was not there when it began is found.
_LOOK_MS = 5_000
_POLL_MS = 500
_JOIN_SECONDS = 15.0
_MOST = 500


class Followed(NamedTuple):
    """A message, and where it stands."""

    topic: str
    partition: int
    offset: int
    message: Message


class KafkaFollower(Closing):
    """Reads topics on and on, from where the group has come; those that begin later are found."""

    def __init__(self, settings: "Settings", topics: Sequence[str], group: str) -> None:
        self._settings = settings
        with telling_unreachable(settings):
            self._consumer = KafkaConsumer(
                **client_options(settings),
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                metadata_max_age_ms=_LOOK_MS,
                max_poll_records=_MOST,
                max_partition_fetch_bytes=16 << 20,
            )
            self._consumer.subscribe(pattern=_pattern(topics))
        # A group with more members than partitions leaves some without any.
        self._joined = Quiet(_JOIN_SECONDS)

    def poll(self) -> list[Followed]:
        """The next messages, those of a partition in their order; none where nothing came for a moment."""
        with telling_unreachable(self._settings):
            batches = self._consumer.poll(timeout_ms=_POLL_MS)
        return [
            Followed(place.topic, place.partition, record.offset, _message(record.headers, record.value))
            for place, records in batches.items()
            for record in records
        ]

    def is_joining(self) -> bool:
        """Whether there is something to follow and the group has not said yet what of it is this member's."""
        return bool(self._consumer.subscription()) and not self._consumer.assignment() and not self._joined()

    def commit(self, done: Sequence[Followed]) -> bool:
        """Let the group go on behind these messages; false where their partitions are another member's by now.

        Then that one reads them again.
        """
        ends: dict[TopicPartition, int] = {}
        for one in done:
            place = TopicPartition(one.topic, one.partition)
            ends[place] = max(ends.get(place, 0), one.offset + 1)
        with telling_unreachable(self._settings):
            try:
                self._consumer.commit({place: OffsetAndMetadata(end, "", -1) for place, end in ends.items()})
            except CommitFailedError:
                return False
        return True

    def lag(self) -> int:
        """How many messages of its partitions are not read yet."""
        with telling_unreachable(self._settings):
            places = sorted(self._consumer.assignment())
            ends = self._consumer.end_offsets(places) if places else {}
            return sum(max(0, end - self._consumer.position(place)) for place, end in ends.items())

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close(autocommit=False)


class Quiet:
    """Tells when nothing has come for so many seconds; never, where none are given."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._now = seconds, now
        self._since = now()

    def heard(self) -> None:
        """Something has come."""
        self._since = self._now()

    def __call__(self) -> bool:
        """Whether it is over."""
        return self._seconds is not None and self._now() - self._since >= self._seconds


def _pattern(topics: Sequence[str]) -> str:
    """Topics by their names, in which `*` stands for anything; dead letters are never taken for messages."""
    names = "|".join(".*".join(map(re.escape, one.split("*"))) for one in topics)
    return rf"^(?!.*\.rejected$)(?:{names})$"


def _message(headers: Sequence[tuple[str, bytes]], value: bytes | None) -> Message:
    return Message({name: header_text(content) for name, content in headers}, value or b"")
