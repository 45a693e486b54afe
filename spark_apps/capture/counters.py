"""Counters of a task, which Hadoop adds up over the committed attempts: told on stderr, as streaming reads them."""

import sys
from collections import Counter

GROUP = "Headwater"
# Had such a call been given one record less, it might have given something.
GAVE_NOTHING = "calls of combine and reduce that gave nothing"
UNREPORTED = "messages of writers that could leave no receipt"

_counts: Counter[tuple[str, str]] = Counter()


def increment(name: str, amount: int = 1, *, group: str = GROUP) -> None:
    """Add to a counter; cheap enough for every record, because it is told once, at the end of the task."""
    _counts[group, name] += amount


def flush() -> None:
    """Tell Hadoop what was counted."""
    for (group, name), amount in _counts.items():
        sys.stderr.write(f"reporter:counter:{group},{name},{amount}\n")
    sys.stderr.flush()
    _counts.clear()
