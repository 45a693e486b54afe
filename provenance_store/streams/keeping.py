"""Who still has the events of sources that were not landed: the cache, and then the topic that they came along."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from provenance_store.settings import Settings
from provenance_store.streams.cache import Cache
from provenance_store.streams.query import Source
from provenance_store.streams.runs import Keeper
from provenance_store.transport.kafka import KafkaTransport

# Messages of a topic, by partition and offset; those that it does not hold any more are not told.
Reader: TypeAlias = Callable[[str, Sequence[tuple[int, int]]], dict[tuple[int, int], bytes]]


def keeper_of(settings: Settings, read: Reader | None = None) -> Keeper:
    """A keeper that asks the cache, and for what has gone from there the topic."""

    def keep(run: str, source: Source, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        found = Cache(settings.home, run, source.name).read(places)
        if source.topic is not None and (left := [place for place in places if place not in found]):
            # An event stands in a file that is named after its topic and partition, at its offset.
            asked = {(int(file.rpartition("/")[2]), offset): (file, offset) for file, offset in left}
            for at, content in (read or KafkaTransport(settings).read_at)(source.topic, list(asked)).items():
                found[asked[at]] = content
        return found

    return keep
