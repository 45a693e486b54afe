"""All examples by name: the query, the generator of its source events, and what it finds."""

from collections.abc import Iterator
from dataclasses import dataclass

from provenance_store.errors import InputError
from provenance_store.streams.examples import (
    item_monitor,
    linear_road,
    movie_ratings,
    object_annotation,
    smart_grid,
    vehicle_tracking,
    word_count,
)
from provenance_store.streams.examples.common import Generate, SourceEvent, mix
from provenance_store.streams.query import StreamQuery


@dataclass(frozen=True, slots=True)
class Example:
    """A query of a paper. `by` are the fields within which all of its operators work; none where they need two keys."""

    query: StreamQuery
    generate: Generate
    finds: str
    paper: str
    by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """By which it is known."""
        return self.query.name

    def events(self, count: int, seed: int, keys: int | None = None) -> Iterator[SourceEvent]:
        """Source events as they come, out of order within the lateness of the source; the same for the same seed."""
        made = self.generate(count, seed) if keys is None else self.generate(count, seed, keys)
        return mix(made, self.query.sources[0].lateness, seed)


_S2P, _ANANKE = "s2p (001)", "Ananke (004)"
_EXAMPLES = (
    Example(word_count.word_count(), word_count.generate, "counts of words at regular intervals", _S2P),
    Example(word_count.grep(), word_count.generate, "words that are in a list", _S2P, word_count.GREP_BY),
    Example(
        movie_ratings.movie_ratings(),
        movie_ratings.generate,
        "movies with a mean score above four",
        _S2P,
        movie_ratings.BY,
    ),
    Example(item_monitor.item_monitor(), item_monitor.generate, "visits of items; peaks and overflows", _S2P),
    Example(linear_road.broken_down(), linear_road.generate, "cars that have broken down", _ANANKE, linear_road.BY),
    Example(linear_road.accident(), linear_road.generate, "cars stopped at one position", _ANANKE),
    Example(linear_road.both(), linear_road.generate, "both of Linear Road", _ANANKE),
    Example(smart_grid.blackout(), smart_grid.generate, "days on which seven meters were dark", _ANANKE),
    Example(smart_grid.anomaly(), smart_grid.generate, "abnormal readings at midnight", _ANANKE, smart_grid.BY),
    Example(smart_grid.both(), smart_grid.generate, "both of Smart Grid", _ANANKE),
    Example(
        vehicle_tracking.speeding(),
        vehicle_tracking.generate,
        "cars faster than 70 km/h over two minutes",
        _ANANKE,
        vehicle_tracking.BY,
    ),
    Example(
        vehicle_tracking.visits(),
        vehicle_tracking.generate,
        "cars with more than nine positions in an area",
        _ANANKE,
        vehicle_tracking.BY,
    ),
    Example(
        vehicle_tracking.both(), vehicle_tracking.generate, "both of Vehicle Tracking", _ANANKE, vehicle_tracking.BY
    ),
    Example(
        object_annotation.bicycles(),
        object_annotation.generate,
        "bicycles in front for more than eleven frames",
        _ANANKE,
        object_annotation.BY,
    ),
    Example(
        object_annotation.pedestrians(),
        object_annotation.generate,
        "pedestrians whom both cameras found",
        _ANANKE,
        object_annotation.BY,
    ),
    Example(
        object_annotation.both(), object_annotation.generate, "both of Object Annotation", _ANANKE, object_annotation.BY
    ),
)
EXAMPLES: dict[str, Example] = {example.name: example for example in _EXAMPLES}


def find_example(name: str) -> Example:
    """The example of a name."""
    try:
        return EXAMPLES[name]
    except KeyError:
        raise InputError(f"There is no example {name!r}. There are: {', '.join(EXAMPLES)}.") from None
