"""`LakeGraph`: the Python API of the lake graph."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from provenance_store.errors import GraphError
from provenance_store.graph.answer import Answer
from provenance_store.graph.connection import Connection
from provenance_store.graph.merge import Merged, Progress, merge_folder
from provenance_store.graph.readonly import Table, run_read_only
from provenance_store.graph.traverse import Question, answer
from provenance_store.settings import Settings

_TRIES = 10


class LakeGraph:
    """The lake graph that the settings name.

    >>> with LakeGraph(load_settings()) as graph:
    ...     graph.merge(Path("reduced/run-1"))
    ...     graph.backward(["lake:counts/run-1#headwater"], sources_only=True).records
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
        self, ids: Iterable[str], *, depth: int | None = None, to: str | None = None, sources_only: bool = False
    ) -> Answer:
        """What the records were made from: at most `depth` steps away, only of dataset `to`, only the first sources."""
        return self._answer(Question(_distinct(ids), "backward", depth, to, sources_only))

    def forward(
        self, ids: Iterable[str], *, depth: int | None = None, to: str | None = None, sinks_only: bool = False
    ) -> Answer:
        """What was made from the records: at most `depth` steps away, only of dataset `to`, only the last results."""
        return self._answer(Question(_distinct(ids), "forward", depth, to, sinks_only))

    def cypher(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout_seconds: float = 60.0
    ) -> Table:
        """The rows of a query that only reads; any other is refused."""
        return run_read_only(self._connection, query, parameters or {}, timeout_seconds=timeout_seconds)

    def _answer(self, question: Question) -> Answer:
        for _ in range(_TRIES):
            found = self._connection.read(lambda tx: answer(tx, question))
            if found is not None:
                return found
        raise GraphError(
            f"Runs were replaced under this question {_TRIES} times: ask it again when the merges are done."
        )


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
