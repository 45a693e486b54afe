from fractions import Fraction
from typing import Any

from tests.stream_oracles.panes import panes


def liked(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, movie, ratings in panes(events, 60_000, 60_000, lambda rating: rating["movie"]):
        valid = [n for n in ratings if 0.5 <= events[n]["score"] <= 5]
        if valid:
            mean = sum(Fraction(events[n]["score"]) for n in valid) / len(valid)
            if mean > 4:
                content = {"movie": movie, "mean": float(mean), "ratings": len(valid)}
                results.append((content, frozenset(valid)))
    return {"liked": results}
