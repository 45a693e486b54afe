from collections import defaultdict
from typing import Any

DAY, HOUR = 86_400_000, 3_600_000


def _days(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[int]]:
    """Of each day and meter, its readings."""
    days = defaultdict(list)
    for n, reading in enumerate(events):
        days[reading["time"] // DAY, reading["meter"]].append(n)
    return days


def blackouts(events: list[dict[str, Any]]) -> Any:
    dark: dict[int, dict[int, list[int]]] = defaultdict(dict)
    for (day, meter), readings in _days(events).items():
        nothing = [n for n in readings if events[n]["consumption"] == 0]
        if all(any(events[n]["time"] // HOUR == day * 24 + hour for n in nothing) for hour in range(24)):
            dark[day][meter] = nothing
    return {
        "blackouts": [
            ({"day": day, "meters": sorted(meters)}, frozenset(n for readings in meters.values() for n in readings))
            for day, meters in dark.items()
            if len(meters) >= 7
        ]
    }


def anomalies(events: list[dict[str, Any]]) -> Any:
    results = []
    for (day, meter), readings in _days(events).items():
        consumed = sum(events[n]["consumption"] for n in readings)
        for n, reading in enumerate(events):
            is_midnight = (day + 1) * DAY <= reading["time"] < (day + 1) * DAY + HOUR
            if reading["meter"] == meter and is_midnight and reading["consumption"] > consumed / 2:
                content = {"meter": meter, "day": day, "consumption": consumed, "midnight": reading["consumption"]}
                results.append((content, frozenset([*readings, n])))
    return {"anomalies": results}
