"""What the papers' queries find, by brute force over lists of source events: nothing of the library is used here.

Each oracle takes events in any order and returns, by stream, the results with the indices of the events that each
depends on: an aggregate's on all of its group and window, a join's on both sides, by the words of the papers.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from tests.stream_oracles import (
    item_monitor,
    linear_road,
    movie_ratings,
    object_annotation,
    smart_grid,
    vehicle_tracking,
    word_count,
)

Expected: TypeAlias = dict[str, list[tuple[dict[str, Any], frozenset[int]]]]
Oracle: TypeAlias = Callable[[list[dict[str, Any]]], Expected]


def _both(one: Oracle, other: Oracle) -> Oracle:
    return lambda events: one(events) | other(events)


ORACLES: dict[str, Oracle] = {
    "word-count": word_count.counts,
    "grep": word_count.found,
    "movie-ratings": movie_ratings.liked,
    "item-monitor": item_monitor.watched,
    "linear-road-broken-down": linear_road.broken_down,
    "linear-road-accident": linear_road.accidents,
    "linear-road": _both(linear_road.broken_down, linear_road.accidents),
    "smart-grid-blackout": smart_grid.blackouts,
    "smart-grid-anomaly": smart_grid.anomalies,
    "smart-grid": _both(smart_grid.blackouts, smart_grid.anomalies),
    "vehicle-tracking-speeding": vehicle_tracking.speeding,
    "vehicle-tracking-visits": vehicle_tracking.visits,
    "vehicle-tracking": _both(vehicle_tracking.speeding, vehicle_tracking.visits),
    "object-annotation-bicycles": object_annotation.bicycles,
    "object-annotation-pedestrians": object_annotation.crossings,
    "object-annotation": _both(object_annotation.bicycles, object_annotation.crossings),
}
