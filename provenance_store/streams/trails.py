"""Where events of a running query came from: a record of links for each, shared by all that follow, copied by none.

An event is known by its stream and its number. Its record names runs of numbers in the streams that it was made from,
so a window of a thousand events is one run. An event that keeps the number of the one it was made from needs no record:
it is known as that one. Sources have no records, but the place of each event, so that a result can be traced to records
of the lake the moment it is made. What no event that is still at work leads to is forgotten.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from provenance_store.streams.query import StreamQuery

# A stream with the first and the last of numbers that follow each other.
Run: TypeAlias = tuple[str, int, int]
Place: TypeAlias = tuple[str, int]


class Leaf(NamedTuple):
    """An event of a source: when it was, and the file and position of its record."""

    time: int
    file: str
    position: int


class Trails(msgspec.Struct, array_like=True):
    """The records of one lane."""

    links: dict[str, dict[int, list[Run]]] = {}
    leaves: dict[str, dict[int, Leaf]] = {}

    def note(self, stream: str, number: int, runs: list[Run]) -> None:
        """What an event was made from directly."""
        self.links.setdefault(stream, {})[number] = runs

    def enter(self, source: str, number: int, leaf: Leaf) -> None:
        """An event of a source that takes part."""
        self.leaves.setdefault(source, {})[number] = leaf

    def sources(self, stream: str, number: int) -> list[tuple[str, int]]:
        """The events of sources that an event was made from, in order."""
        return sorted(self._follow([(stream, number, number)]))

    def keep(self, alive: Iterable[Run]) -> None:
        """Forget all that none of these leads to."""
        links: dict[str, dict[int, list[Run]]] = {}
        leaves: dict[str, dict[int, Leaf]] = {}
        for stream, number in self._follow(alive, links):
            leaves.setdefault(stream, {})[number] = self.leaves[stream][number]
        self.links, self.leaves = links, leaves

    def _follow(
        self, runs: Iterable[Run], crossed: dict[str, dict[int, list[Run]]] | None = None
    ) -> set[tuple[str, int]]:
        """The events of sources behind runs; the records on the way are added to `crossed`."""
        found: set[tuple[str, int]] = set()
        seen: dict[str, dict[int, list[Run]]] = {} if crossed is None else crossed
        left = list(runs)
        while left:
            stream, first, last = left.pop()
            records = self.links.get(stream)
            if records is None:
                # Only of a source there are no records: what is made from nothing has never been.
                found.update((stream, number) for number in range(first, last + 1))
                continue
            known = seen.setdefault(stream, {})
            for number in range(first, last + 1):
                if number not in known:
                    known[number] = records[number]
                    left += records[number]
        return found


def roots_of(query: StreamQuery) -> dict[str, str]:
    """Of each stream, the one by whose numbers its events are known."""
    roots = {source.name: source.name for source in query.sources}
    for one in query.ordered():
        roots[one.name] = roots[one.inputs[0]] if one.rule.keeps_number else one.name
    return roots


def runs_of(numbers: Sequence[tuple[str, int]]) -> list[Run]:
    """Runs that hold just these events."""
    if numbers and numbers[0][0] == numbers[-1][0] and numbers[-1][1] - numbers[0][1] + 1 == len(numbers):
        # A window in the order of its stream, with nothing left out: by far the most.
        return [(numbers[0][0], numbers[0][1], numbers[-1][1])]
    runs: list[Run] = []
    for stream, number in sorted(set(numbers)):
        if runs and runs[-1][0] == stream and runs[-1][2] == number - 1:
            runs[-1] = (stream, runs[-1][1], number)
        else:
            runs.append((stream, number, number))
    return runs
