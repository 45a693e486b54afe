from itertools import pairwise
from math import asin, cos, pi, sin, sqrt
from typing import Any

from tests.stream_oracles.panes import panes


def _kilometres(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The great circle between two positions, on an earth of 6,371 km."""
    there, here = other["lat"] * pi / 180, one["lat"] * pi / 180
    across = (other["lon"] - one["lon"]) * pi / 180
    half = sin((there - here) / 2) ** 2 + cos(here) * cos(there) * sin(across / 2) ** 2
    return 2 * 6371 * asin(sqrt(half))


def speeding(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, car, positions in panes(events, 120_000, 30_000, lambda position: position["car"]):
        hours = (events[positions[-1]]["time"] - events[positions[0]]["time"]) / 3_600_000
        legs = [_kilometres(events[n], events[m]) for n, m in pairwise(positions)]
        if hours and sum(legs) / hours > 70:
            last = (events[positions[-1]]["time"] - events[positions[-2]]["time"]) / 3_600_000
            content = {
                "car": car,
                "positions": len(positions),
                "immediate": round(legs[-1] / last, 3),
                "average": round(sum(legs) / hours, 3),
            }
            results.append((content, frozenset(positions)))
    return {"speeding": results}


def visits(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, car, positions in panes(events, 300_000, 60_000, lambda position: position["car"]):
        there = [
            n for n in positions if 39.912 <= events[n]["lat"] <= 39.924 and 116.298 <= events[n]["lon"] <= 116.328
        ]
        if len(there) > 9:
            results.append(({"car": car, "count": len(there)}, frozenset(there)))
    return {"visits": results}
