"""How far behind its topics a stream is, partition by partition: told while it runs, and which of them stand still."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Lag:
    """What a stream's progress tells of its partitions: how many messages wait, and since when nothing was read."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._read: dict[Place, tuple[int, float]] = {}
        self._waiting: dict[Place, int] = {}
        self._told: set[Place] = set()

    @property
    def waiting(self) -> Mapping[Place, int]:
        """How many messages each partition holds that were not read yet."""
        return self._waiting

    def update(self, progress: Mapping[str, Any]) -> None:
        """Take in a progress of Spark's."""
        for source in progress.get("sources", ()):
            ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
            for place, offset in ends.items():
                known = self._read.get(place)
                if known is None or known[0] != offset:
                    self._read[place] = offset, self._clock()
                    self._told.discard(place)
                self._waiting[place] = max(latest.get(place, offset) - offset, 0)

    def stalled(self) -> Iterator[str]:
        """A sentence for each partition that has messages and has not been read for long; once each time it happens."""
        for place, (_, since) in self._read.items():
            quiet, waiting = self._clock() - since, self._waiting[place]
            if waiting and quiet >= self._patience and place not in self._told:
                self._told.add(place)
                yield (
                    f"partition {place.partition} of {place.topic} has not been read for {quiet:,.0f} s, "
                    f"and {waiting:,} messages wait in it"
                )


def _offsets(told: Any) -> dict[Place, int]:
    """Offsets as Spark tells them: a JSON text, or what it holds, of topics with their partitions; or an empty text."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:  # after a restart it does not know the latest yet
            return {}
    if not isinstance(told, Mapping):
        return {}
    return {
        Place(topic, int(partition)): int(offset)
        for topic, partitions in told.items()
        for partition, offset in partitions.items()
    }
