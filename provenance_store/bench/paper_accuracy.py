"""Paper 003, Figure 14: which share of the true dependencies is found when elements come out of order.

As there, the stream is one partition. Grouping has its meaning only where an element is all that an execution used or
generated; the window and the serial algorithm are made for single edges, and are shown with groups as well. The exact
reduction gets every edge as a message by itself, without headers, which is the least that it can be given.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random

import msgspec

from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.bench.paper_edges import Spelling
from provenance_store.model.document import compact
from provenance_store.reduction.strategies.elements import read_elements
from provenance_store.reduction.strategies.grouping import Grouping
from provenance_store.reduction.strategies.port import Element, Pair, Strategy
from provenance_store.reduction.strategies.serial import Serial
from provenance_store.reduction.strategies.stages import Stage, StagedReducer
from provenance_store.reduction.strategies.window import SlidingWindow
from provenance_store.services.service import Say
from provenance_store.transport.shuffle import displace

EXACT = "exact"
PERCENTS = (0, 1, 5, 10, 20, 30, 40, 50)


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """One way on one stream: dependencies found, false ones, and emitted edges that are not between records."""

    way: str
    percent: float
    true: int
    found: int
    false: int
    left_over: int

    @property
    def share(self) -> float:
        """Found of a hundred true ones."""
        return 100 * self.found / self.true


def measure_accuracy(tweets: int, percents: Sequence[float], *, seed: int, say: Say) -> list[Accuracy]:
    """Every way at every percentage of elements out of order."""
    stream = HashtagStream(tweets)
    groups = list(read_elements(stream))
    singles: list[Element] = [[edge] for element in groups for edge in element]
    truth = set(stream.dependencies().iter_rows())
    ways = _ways(Spelling(stream.run))
    rows = []
    for percent in percents:
        for way, (elements, reduce) in ways.items():
            say(f"Accuracy: {percent:g} % out of order, {way}")
            chosen = singles if elements == "edges" else groups
            displaced = displace(chosen, percent, Random(seed))  # noqa: S311 - a simulation, to be repeated
            rows.append(compare(way, percent, reduce(displaced), truth))
    return rows


def compare(way: str, percent: float, emitted: Iterable[Pair], truth: set[Pair]) -> Accuracy:
    """What was emitted, beside the true dependencies between compact ids."""
    pairs = {(compact(above), compact(below)) for above, below in emitted}
    between_records = {pair for pair in pairs if all(end.startswith("lake:") for end in pair)}
    return Accuracy(
        way=way,
        percent=percent,
        true=len(truth),
        found=len(pairs & truth),
        false=len(between_records - truth),
        left_over=len(pairs - between_records),
    )


def _ways(spelling: Spelling) -> Mapping[str, tuple[str, Callable[[Sequence[Element]], Iterable[Pair]]]]:
    """By name, what the elements are, and how they are reduced."""
    return {
        EXACT: ("edges", spelling.follow),
        "grouping": ("groups", partial(_in_one, Grouping)),
        "grouping, local and global": ("groups", _in_stages),
        "window": ("edges", partial(_in_one, SlidingWindow)),
        "window, groups": ("groups", partial(_in_one, SlidingWindow)),
        "serial": ("edges", partial(_in_one, Serial)),
        "serial, groups": ("groups", partial(_in_one, Serial)),
    }


def _in_one(make: Callable[[], Strategy], elements: Sequence[Element]) -> Iterator[Pair]:
    """One processor that flushes at the end alone, as the experiment of the paper has it."""
    stage = Stage(make(), None)
    for element in elements:
        stage.add(element)
    return (edge for group in stage.end() for edge in group)


def _in_stages(elements: Sequence[Element]) -> list[Pair]:
    reducer = StagedReducer(Grouping)
    emitted = [edge for element in elements for edge in reducer.add(0, element)]
    return emitted + reducer.end()
