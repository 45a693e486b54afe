"""`LakeGraph`: the Python API of the lake graph."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from provenance_store.errors import GraphError
from provenance_store.graph.answer import Answer, Feed
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.merge import Merged, Progress, merge_folder
from provenance_store.graph.readonly import Table, run_read_only
from provenance_store.graph.relations import Paths, find_common, find_only_from, find_paths
from provenance_store.graph.snapshot import OvertakenError, Period
from provenance_store.graph.trace import Question, Trace, trace
from provenance_store.settings import Settings

_TRIES = 10
T = TypeVar("T")


class LakeGraph:
    """The lake graph that the settings name.

    >>> with LakeGraph(load_settings()) as graph:
    ...     graph.merge(Path("reduced/run-1"))
    ...     graph.backward(["lake:counts/run-1#headwater"], sources_only=True).records

    An answer is held whole. A `Trace` is not: it knows its verdict, runs and counts, and reads records and edges a page
    at a time, for answers of any size.
    """

    def __init__(self, settings: Settings) -> None:
        self._connection = Connection(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._connection.close()

    def merge(self, folder: Path, *, progress: Progress | None = None) -> Merged:
        """Merge the reduced graph in `folder`; `progress` is told how many edges of how many are in."""
        return merge_folder(self._connection, folder, progress)

    def backward(
        self,
        ids: Iterable[str],
        *,
        depth: int | None = None,
        to: str | None = None,
        sources_only: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Answer:
        """What the records were made from: at most `depth` steps away, only of dataset `to`, only the first sources."""
        question = Question(_distinct(ids), "backward", depth, to, sources_only, Period(since, until))
        return settled(lambda: trace(self._connection, question).answer())

    def forward(
        self,
        ids: Iterable[str],
        *,
        depth: int | None = None,
        to: str | None = None,
        sinks_only: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Answer:
        """What was made from the records: at most `depth` steps away, only of dataset `to`, only the last results."""
        question = Question(_distinct(ids), "forward", depth, to, sinks_only, Period(since, until))
        return settled(lambda: trace(self._connection, question).answer())

    def trace(self, question: Question) -> Trace:
        """What a question reaches, to be read in pages."""
        return settled(lambda: trace(self._connection, question))

    def between(
        self, output: str, source: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Paths:
        """Whether `output` depends on `source`, and along which ways."""
        question = Question((output,), "backward", period=Period(since, until))
        return settled(lambda: find_paths(self._connection, question, source))

    def common(self, ids: Iterable[str], *, since: datetime | None = None, until: datetime | None = None) -> Trace:
        """What all of the records were made from."""
        question = Question(_distinct(ids), "backward", period=Period(since, until))
        return settled(lambda: find_common(self._connection, question))

    def only_from(self, ids: Iterable[str], *, since: datetime | None = None, until: datetime | None = None) -> Trace:
        """What was made from the records and from nothing else: without them it would be left without a source."""
        question = Question(_distinct(ids), "forward", period=Period(since, until))
        return settled(lambda: find_only_from(self._connection, question))

    def datasets(self) -> list[Feed]:
        """The lake from above: which dataset feeds which, through which DIC, by how many runs and derivations."""
        rows = self._connection.read(lambda tx: tx.run(cypher("feeds")).values())
        return [Feed(*row) for row in rows]

    def cypher(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout_seconds: float = 60.0
    ) -> Table:
        """The rows of a query that only reads; any other is refused."""
        return run_read_only(self._connection, query, parameters or {}, timeout_seconds=timeout_seconds)


def settled(ask: Callable[[], T]) -> T:
    """What `ask` returns; again where a run was replaced under it, as a page of a trace may find out late."""
    for _ in range(_TRIES):
        try:
            return ask()
        except OvertakenError:
            continue
    raise GraphError(f"Runs were replaced under this question {_TRIES} times: ask it again when the merges are done.")


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
