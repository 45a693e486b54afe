"""Paper 003, Algorithm 1 with a sliding window (Section IV-C): edges one by one, and the last ones remembered.

The window holds the last edges as they came, also those that the state has since contracted. Where the state knows
nothing of a vertex the window is asked, so a vertex that went too early is still found while its edges are in there.
With a window as long as the stream nothing is lost, in any order.
"""

from collections import Counter, deque
from collections.abc import Collection

from provenance_store.model.document import is_lake
from provenance_store.reduction.strategies.edge_table import EdgeTable
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Element, Pair

WINDOW_SIZE = 1000


class SlidingWindow(Grouping):
    """Groups of one edge, and two places to look: the state, then the window, which a flush leaves as it is."""

    def __init__(self, size: int = WINDOW_SIZE) -> None:
        super().__init__()
        self._size = size
        self._past: deque[Pair] = deque()
        self._copies: Counter[Pair] = Counter()
        self._window = EdgeTable()

    def add(self, element: Element) -> None:
        """Contract each edge by itself, then remember it."""
        for edge in element:
            super().add((edge,))
            self._remember(edge)

    def _remember(self, edge: Pair) -> None:
        self._past.append(edge)
        self._copies[edge] += 1
        self._window.insert(edge)
        if len(self._past) > self._size:
            oldest = self._past.popleft()
            self._copies[oldest] -= 1
            if not self._copies[oldest]:
                del self._copies[oldest]
                self._window.delete(oldest)

    def _find_over(self, vertex: str) -> Collection[str]:
        return super()._find_over(vertex) or (() if is_lake(vertex) else self._window.dependents(vertex))

    def _find_under(self, vertex: str) -> Collection[str]:
        return super()._find_under(vertex) or (() if is_lake(vertex) else self._window.dependencies(vertex))
