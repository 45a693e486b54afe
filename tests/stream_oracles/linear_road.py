from typing import Any

from tests.stream_oracles.panes import panes


def _standing(events: list[dict[str, Any]]) -> list[tuple[int, int, list[int]]]:
    """The end of two minutes, a car, and its four reports of speed zero at one place."""
    found = []
    for end, car, reports in panes(events, 120_000, 30_000, lambda report: report["car"]):
        zero = [n for n in reports if events[n]["speed"] == 0]
        if len(zero) == 4 and len({_place(events[n]) for n in zero}) == 1:
            found.append((end, car, zero))
    return found


def _place(report: dict[str, Any]) -> tuple[int, int, int]:
    return report["highway"], report["direction"], report["position"]


def broken_down(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, car, reports in _standing(events):
        highway, direction, position = _place(events[reports[0]])
        content = {
            "car": car,
            "highway": highway,
            "direction": direction,
            "position": position,
            "places": 1,
            "reports": 4,
            "since": min(events[n]["time"] for n in reports),
        }
        results.append((content, frozenset(reports)))
    return {"broken-down": results}


def accidents(events: list[dict[str, Any]]) -> Any:
    standing = _standing(events)
    results = []
    for end, place in {(end, _place(events[reports[0]])) for end, _, reports in standing}:
        here = [
            (car, reports) for when, car, reports in standing if when == end and _place(events[reports[0]]) == place
        ]
        if len(here) >= 2:
            content = {
                "highway": place[0],
                "direction": place[1],
                "position": place[2],
                "cars": sorted(car for car, _ in here),
                "since": max(min(events[n]["time"] for n in reports) for _, reports in here),
            }
            results.append((content, frozenset(n for _, reports in here for n in reports)))
    return {"accidents": results}
