"""Paper 003, Algorithm 1 with grouping (Sections IV-A and IV-C): an element's edges are contracted together.

The state holds edges that cannot be contracted yet. A vertex goes when an edge into it and an edge out of it have met,
and what comes for it later finds nothing: the paper calls this early elimination. Taking all that an execution used, or
all that it generated, as one group prevents it where every item is used by one execution alone, in any order of the
groups. An item that several executions use is gone after the first of them. The edges of a group share a vertex, else
two of them could take the same edge of the state from one another.
"""

from collections.abc import Collection

from provenance_store.model.document import is_lake
from provenance_store.reduction.strategies.edge_table import EdgeTable
from provenance_store.reduction.strategies.port import Element, Pair


class Grouping:
    """The state is all that there is to meet."""

    def __init__(self) -> None:
        self._state = EdgeTable()

    def add(self, element: Element) -> None:
        """Contract the element with the state; what was contracted through goes only after its last edge."""
        spent: list[Pair] = []
        met: set[Pair] = set()
        waiting = list(element)
        while waiting:
            derived: list[Pair] = []
            for edge in waiting:
                if edge in met:
                    continue
                met.add(edge)
                above, below = edge
                if over := self._find_over(above):
                    derived += [(one, below) for one in over]
                    spent += [(one, above) for one in over]
                elif under := self._find_under(below):
                    derived += [(above, one) for one in under]
                    spent += [(below, one) for one in under]
                else:
                    self._state.insert(edge)
            waiting = derived
        for edge in spent:
            self._state.delete(edge)

    def flush(self) -> list[Element]:
        """All that the state holds."""
        groups = self._state.groups()
        self._state = EdgeTable()
        return groups

    def _find_over(self, vertex: str) -> Collection[str]:
        """What is known to depend on a vertex; of a record nothing is asked, as it is kept."""
        return () if is_lake(vertex) else self._state.dependents(vertex)

    def _find_under(self, vertex: str) -> Collection[str]:
        """What a vertex is known to depend on."""
        return () if is_lake(vertex) else self._state.dependencies(vertex)
