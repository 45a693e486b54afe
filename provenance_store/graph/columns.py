"""What a search remembers, in columns of numbers: a million records are a few megabytes."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
NONE = np.empty(0, np.int64)


class Seen:
    """A set of numbers, a bit each; those below 0 stand between those from 0 up, as there are few of them."""

    def __init__(self) -> None:
        self._bits = np.zeros(1024, np.uint8)

    def add(self, numbers: Numbers) -> Numbers:
        """Put numbers in; those that are new, each once and in order."""
        new = np.unique(numbers[~self.holds(numbers)])
        if len(new):
            places = _places(new)
            room = int(places.max()) // 8 + 1
            if room > len(self._bits):
                self._bits = np.concatenate([self._bits, np.zeros(max(room, 2 * len(self._bits)), np.uint8)])
            np.bitwise_or.at(self._bits, places >> 3, np.uint8(1) << (places & 7).astype(np.uint8))
        return new

    def holds(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Of each number, whether it is in."""
        places = _places(numbers)
        within = places < 8 * len(self._bits)
        places = np.where(within, places, 0)
        held: npt.NDArray[np.bool_] = (self._bits[places >> 3] >> (places & 7).astype(np.uint8)) & 1 == 1
        return within & held


def _places(numbers: Numbers) -> Numbers:
    """0, -1, 1, -2, 2 … as 0, 1, 2, 3, 4 …"""
    return np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges as a search crosses them: from the near record to the far one, by a run."""

    near: Numbers
    far: Numbers
    run: Numbers

    @classmethod
    def concat(cls, parts: "list[Edges]") -> "Edges":
        """All of them, each once, in order."""
        near, far, run = (
            np.concatenate([NONE, *(getattr(part, name) for part in parts)]) for name in ("near", "far", "run")
        )
        order = np.lexsort((run, far, near))
        edges = cls(near[order], far[order], run[order])
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = np.any([column[1:] != column[:-1] for column in (edges.near, edges.far, edges.run)], axis=0)
        return edges.select(is_new)

    def select(self, chosen: npt.NDArray[np.bool_] | slice) -> "Edges":
        """Those that are chosen."""
        return Edges(self.near[chosen], self.far[chosen], self.run[chosen])

    def __len__(self) -> int:
        return len(self.near)


class Links:
    """From numbers to the places of the edges that leave them."""

    def __init__(self, leaves: Numbers) -> None:
        self._order = np.argsort(leaves, kind="stable")
        self._sorted = leaves[self._order]

    def of(self, numbers: Numbers) -> Numbers:
        """The places of all edges that leave these."""
        first = np.searchsorted(self._sorted, numbers, side="left")
        counts = np.searchsorted(self._sorted, numbers, side="right") - first
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places: Numbers = self._order[np.repeat(first, counts) + offsets]
        return places


def leading_to(kept: Numbers, edges: Edges) -> npt.NDArray[np.bool_]:
    """Of each edge, whether a kept record is reached along it: its far end is one, or leads to one."""
    arriving = Links(edges.far)
    leads = np.zeros(len(edges), np.bool_)
    seen = Seen()
    frontier = seen.add(kept)
    while len(frontier):
        places = arriving.of(frontier)
        leads[places] = True
        frontier = seen.add(edges.near[places])
    return leads


def levels_from(start: Numbers, edges: Edges) -> list[Numbers]:
    """What is reachable along edges, by the fewest steps; the starts are level 0."""
    leaving = Links(edges.near)
    seen = Seen()
    seen.add(start)
    levels = [np.unique(start)]
    while len(levels[-1]):
        levels.append(seen.add(edges.far[leaving.of(levels[-1])]))
    return levels[:-1]


def shortest_path(start: Numbers, ends: Numbers, edges: Edges) -> Numbers:
    """One of the shortest ways from a start to an end, both included; nothing where there is none."""
    levels = levels_from(start, edges)
    arriving = Links(edges.far)
    for depth, level in enumerate(levels):
        if len(met := np.intersect1d(level, ends)):
            path = met[:1]
            for above in reversed(levels[:depth]):
                before = np.intersect1d(edges.near[arriving.of(path[:1])], above)
                path = np.concatenate([before[:1], path])
            return path
    return NONE
