"""Windows by brute force: every window that there may be, and each event asked whether it is in it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any


def panes(
    events: list[dict[str, Any]], size: int, every: int, key: Callable[[dict[str, Any]], Any]
) -> Iterator[tuple[int, Any, list[int]]]:
    """The end of each window [end - size, end), a key, and the indices of its events there in the order of time."""
    if not events:
        return
    times = [event["time"] for event in events]
    end = min(times) // every * every
    while end <= max(times) + size:
        inside = defaultdict(list)
        for index in sorted(range(len(events)), key=lambda index: times[index]):
            if end - size <= times[index] < end:
                inside[key(events[index])].append(index)
        for value, indices in inside.items():
            yield end, value, indices
        end += every
