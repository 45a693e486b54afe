"""Messages to the elements of a stream, in the order in which a collector tells them."""

from collections.abc import Iterable, Iterator

from provenance_store.model.document import Edge, RelationName, read_document
from provenance_store.model.message import MANIFEST, Message
from provenance_store.reduction.strategies.port import Element, Pair


def read_elements(messages: Iterable[Message]) -> Iterator[Element]:
    """The elements of a partition's messages, as they come; manifests are passed over.

    A document does not tell the order of its relations. Executions are taken in the order of their first appearance,
    what each used before what it generated; the members of collections, which executions use, come before them.
    """
    for message in messages:
        if message.headers.get("kind") != MANIFEST:
            yield from group_edges(read_document(message.value))


def group_edges(edges: Iterable[Edge]) -> list[Element]:
    """The edges of a document as elements: those of one relation of one execution, collection or derived entity."""
    groups: dict[RelationName, dict[str, list[Pair]]] = {"hadMember": {}, "used": {}, "wasDerivedFrom": {}}
    made: dict[str, list[Pair]] = {}
    for relation, above, below in edges:
        if relation == "wasGeneratedBy":
            made.setdefault(below, []).append((above, below))
        else:
            groups[relation].setdefault(above, []).append((above, below))
    elements: list[Element] = [*groups["hadMember"].values()]
    for activity in groups["used"] | made:
        elements += [one[activity] for one in (groups["used"], made) if activity in one]
    return [*elements, *groups["wasDerivedFrom"].values()]
