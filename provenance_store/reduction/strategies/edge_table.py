"""A set of edges that can be looked up from either end in one step."""

from collections.abc import Collection

from provenance_store.reduction.strategies.port import Element, Pair

_NONE: dict[str, None] = {}


class EdgeTable:
    """Edges by what depends and by what is depended on; in the order in which they came, so that runs repeat."""

    def __init__(self) -> None:
        self._dependencies: dict[str, dict[str, None]] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def groups(self) -> list[Element]:
        """All edges, those of one dependent together."""
        return [[(above, below) for below in row] for above, row in self._dependencies.items()]

    def dependencies(self, of: str) -> Collection[str]:
        """What it depends on."""
        return self._dependencies.get(of, _NONE)

    def dependents(self, of: str) -> Collection[str]:
        """What depends on it."""
        return self._dependents.get(of, _NONE)

    def insert(self, edge: Pair) -> None:
        """Add an edge, if it is not there."""
        above, below = edge
        self._dependencies.setdefault(above, {})[below] = None
        self._dependents.setdefault(below, {})[above] = None

    def delete(self, edge: Pair) -> None:
        """Take an edge out, if it is there."""
        above, below = edge
        _take_out(self._dependencies, above, below)
        _take_out(self._dependents, below, above)


def _take_out(table: dict[str, dict[str, None]], one: str, other: str) -> None:
    row = table.get(one)
    if row is not None:
        row.pop(other, None)
        if not row:
            del table[one]
