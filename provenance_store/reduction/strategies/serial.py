"""The serial algorithm that paper 003 compares with, its reference [9] (Chen, Evans and Plale, 2016).

Derivations are taken in the order in which values come to be. A matrix tells of each value which inputs it depends on;
a derivation adds the row of what was used to the row of what was made. Only what is known at that moment is added: a
value that nothing has been told of yet is taken for an input, and what is told of it later does not reach those that
were made from it. In order, that is exact; out of order it loses.

Nothing in a stream tells when a value is used for the last time, so every row is kept to the end. That is in favour of
the algorithm: the code published with paper 003 forgets a value when it is first used.
"""

from provenance_store.model.document import is_lake
from provenance_store.reduction.strategies.port import Element


class Serial:
    """A row a value, as the set of its inputs."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, None]] = {}
        self._used: set[str] = set()

    def add(self, element: Element) -> None:
        """Take derivations one by one."""
        for above, below in element:
            self._used.add(below)
            known = None if is_lake(below) else self._rows.get(below)
            row = self._rows.setdefault(above, {})
            if known is None:
                row[below] = None
            else:
                row.update(known)

    def flush(self) -> list[Element]:
        """The rows of the outputs: records, and what nothing was made from."""
        outputs = [value for value in self._rows if is_lake(value) or value not in self._used]
        groups: list[Element] = [[(value, one) for one in self._rows[value]] for value in outputs]
        self._rows, self._used = {}, set()
        return groups
