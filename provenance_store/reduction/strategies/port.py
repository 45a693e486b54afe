"""The port that every strategy of stream reduction stands behind.

To add one, write a class with these two methods in a file of its own, list it in `modes.py`, and run
`tests/property/test_strategies.py` over it. What callers rely on:

- What is emitted is true: an edge only ever joins what a path in the stream joins.
- Records of the lake are kept: no path is contracted through one.
- `flush` empties the state, so that memory is bounded by what came since the last one.

Ids are expanded texts and not numbers: local reducers may be processes of their own, and must name things alike.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

# What depends, and what it depends on.
Pair: TypeAlias = tuple[str, str]

# Edges that a collector tells together: all that an execution used, or all that it generated.
Element: TypeAlias = Sequence[Pair]


class Strategy(Protocol):
    """The state of one stream processor."""

    def add(self, element: Element) -> None:
        """Take the next element of the stream."""

    def flush(self) -> list[Element]:
        """The reduced edges, each once, those of one dependent together; they are then forgotten."""
