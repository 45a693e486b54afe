"""Edges between expanded ids as PROV-JSON, to weigh them and to follow them."""

from collections.abc import Iterable, Iterator, Sequence

from provenance_store.model.document import RelationName, compact, write_document
from provenance_store.model.ids import run_namespace
from provenance_store.model.message import Message
from provenance_store.reduction.exact import reduce_messages
from provenance_store.reduction.strategies.port import Element, Pair
from provenance_store.transport.port import Received

# As many as a message of the stream itself holds.
_EDGES = 1450


class Spelling:
    """How the ids of one run are written in its documents."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._namespace = run_namespace(run)

    def write(self, edges: Sequence[Pair], relation: RelationName = "wasDerivedFrom") -> bytes:
        """A document of edges of one relation."""
        return write_document(self._run, [(relation, self._shorten(a), self._shorten(b)) for a, b in edges])

    def weigh(self, edges: Sequence[Pair], relation: RelationName = "wasDerivedFrom") -> int:
        """How many bytes of PROV-JSON they take, in documents as large as those that the stream is made of."""
        return sum(len(self.write(edges[at : at + _EDGES], relation)) for at in range(0, len(edges), _EDGES))

    def follow(self, elements: Iterable[Element]) -> Iterator[Pair]:
        """The exact reduction of edges, each element a message without headers: what can be reached through them."""
        messages = (Message({}, self.write(element)) for element in elements)
        reduced = reduce_messages(Received(message, 0, offset) for offset, message in enumerate(messages))
        return (pair for one in reduced for pair in one.graph.iter_rows())

    def _shorten(self, expanded: str) -> str:
        if expanded.startswith(self._namespace):
            return "run:" + expanded[len(self._namespace) :]
        return compact(expanded)
