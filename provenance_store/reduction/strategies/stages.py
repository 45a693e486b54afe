"""Local reducers, one a partition, that feed a global one, as in paper 003 (Figure 6 and Section V).

    reducer = StagedReducer(MODES["grouping"])
    for partition, element in until_idle(arrivals):
        emitted += reducer.add(partition, element)
    emitted += reducer.end()

A reducer flushes after every so many edges and begins anew, so what belongs together may be emitted in several flushes:
whoever stores the edges must follow them. What a local reducer emits is no longer grouped by execution: as in the code
published with the paper, the edges of one dependent are an element of the global reducer. It may then eliminate an
execution with several outputs after the first of them, where a batch ended between what it used and what it generated.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from provenance_store.reduction.strategies.port import Element, Pair, Strategy

T = TypeVar("T")

LOCAL_BATCH = 20_000
GLOBAL_BATCH = 100_000
IDLE_SECONDS = 30.0


class Stage:
    """One stream processor: a strategy that is flushed after every so many edges, or only at the end."""

    def __init__(self, strategy: Strategy, batch: int | None) -> None:
        self._strategy = strategy
        self._batch = batch
        self._count = 0

    def add(self, element: Element) -> list[Element]:
        """Take an element, whole also where it is larger than a batch; the flush, where it filled one."""
        self._strategy.add(element)
        self._count += len(element)
        return self.end() if self._batch is not None and self._count >= self._batch else []

    def end(self) -> list[Element]:
        """What is left."""
        self._count = 0
        return self._strategy.flush()


class StagedReducer:
    """A local stage for each partition that something came from, and one global stage."""

    def __init__(
        self,
        make: Callable[[], Strategy],
        *,
        local_batch: int | None = LOCAL_BATCH,
        global_batch: int | None = GLOBAL_BATCH,
    ) -> None:
        self._make = make
        self._local_batch = local_batch
        self._locals: dict[int, Stage] = {}
        self._global = Stage(make(), global_batch)
        self.edges_local = 0

    def add(self, partition: int, element: Element) -> list[Pair]:
        """Take the next element of a partition; what the global stage emits on it."""
        if partition not in self._locals:
            self._locals[partition] = Stage(self._make(), self._local_batch)
        return self._hand_on(self._locals[partition].add(element))

    def end(self) -> list[Pair]:
        """Flush every stage: the stream has ended, or is taken to have."""
        emitted = [edge for stage in self._locals.values() for edge in self._hand_on(stage.end())]
        return emitted + _flatten(self._global.end())

    def _hand_on(self, flushed: list[Element]) -> list[Pair]:
        self.edges_local += sum(map(len, flushed))
        return [edge for element in flushed for edge in _flatten(self._global.add(element))]


def _flatten(elements: list[Element]) -> list[Pair]:
    return [edge for element in elements for edge in element]


def until_idle(
    arrivals: Iterable[T | None], *, seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """What arrives, up to the end or until nothing came for so long; None is a poll that brought nothing.

    A stream without a manifest does not tell its end; this is how paper 003 takes it to have come.
    """
    last = clock()
    for one in arrivals:
        if one is not None:
            yield one
            last = clock()
        elif clock() - last >= seconds:
            return
