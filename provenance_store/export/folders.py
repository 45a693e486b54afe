"""The reduced graphs of a lake, each run once, found in folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from provenance_store.errors import InputError
from provenance_store.graph.reduced import ReducedGraph
from provenance_store.model.account import ACCOUNT_FILE


@dataclass(frozen=True, slots=True)
class Found:
    """The newest graph of every run, in the order of run ids, and folders whose reduction has not finished."""

    graphs: list[ReducedGraph]
    unfinished: list[Path]


def find_graphs(folders: Sequence[Path]) -> Found:
    """The graphs in folders that `headwater reduce` wrote, or that hold such folders."""
    graphs: dict[str, ReducedGraph] = {}
    unfinished = []
    for folder in dict.fromkeys(path.resolve() for given in folders for path in _candidates(given)):
        if (folder / ACCOUNT_FILE).exists():
            graph = ReducedGraph.open(folder)
            run = graph.account.run
            graphs[run] = _newer(graphs[run], graph) if run in graphs else graph
        else:
            unfinished.append(folder)
    if not graphs:
        raise InputError(f"No reduced graph in {', '.join(map(str, folders))}. Run `headwater reduce` first.")
    return Found([graphs[run] for run in sorted(graphs)], unfinished)


def _candidates(given: Path) -> list[Path]:
    if not given.is_dir():
        raise InputError(f"{given} is no folder: name one that `headwater reduce` wrote, or one that holds several.")
    if (given / ACCOUNT_FILE).exists():
        return [given]
    return sorted(path for path in given.iterdir() if path.is_dir() and not path.name.startswith("."))


def _newer(one: ReducedGraph, other: ReducedGraph) -> ReducedGraph:
    if one.account.generation != other.account.generation:
        return max(one, other, key=lambda graph: graph.account.generation)
    # A copy says the same, but for how long it took.
    if msgspec.structs.replace(one.account, seconds=0) != msgspec.structs.replace(other.account, seconds=0):
        raise InputError(
            f"{one.folder} and {other.folder} are both generation {one.account.generation} of run "
            f"{one.account.run}, and differ: leave out the one that no longer holds."
        )
    return one
