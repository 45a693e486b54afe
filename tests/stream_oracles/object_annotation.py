from collections import Counter
from typing import Any

from tests.stream_oracles.panes import panes


def _is_ahead(found: dict[str, Any]) -> bool:
    return found["type"] == "bicycle" and 0 < found["x"] <= 30 and -2 <= found["y"] <= 2


def bicycles(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, vehicle, frames in panes(events, 6_000, 1_000, lambda frame: frame["vehicle"]):
        counts = Counter(
            number for n in frames for number in {one["object"] for one in events[n]["lidar"] if _is_ahead(one)}
        )
        for number, count in counts.items():
            if count > 11:
                seen = [n for n in frames if any(_is_ahead(o) and o["object"] == number for o in events[n]["lidar"])]
                content = {
                    "vehicle": vehicle,
                    "object": number,
                    "frames": count,
                    "until": max(events[n]["time"] for n in seen),
                }
                results.append((content, frozenset(seen)))
    return {"bicycles": results}


def crossings(events: list[dict[str, Any]]) -> Any:
    def people(frame: dict[str, Any], camera: str) -> list[int]:
        return [one["object"] for one in frame[camera] if one["type"] == "pedestrian"]

    results = []
    for n, one in enumerate(events):
        for m, other in enumerate(events):
            if one["vehicle"] == other["vehicle"] and abs(one["time"] - other["time"]) < 2_000:
                for left in people(one, "left"):
                    for right in people(other, "right"):
                        if left == right:
                            content = {
                                "vehicle": one["vehicle"],
                                "object": left,
                                "left": one["time"],
                                "right": other["time"],
                            }
                            results.append((content, frozenset([n, m])))
    return {"crossings": results}
