"""What must hold of live provenance, whoever told it."""

from collections.abc import Iterable, Iterator

from provenance_store.streams.live import Edge, Element, Expired, SinkVertex, SourceVertex
from provenance_store.streams.live_messages import LiveMessage, Once, read_message


def in_order(sent: Iterable[LiveMessage]) -> Iterator[Element]:
    """All elements, after dropping repeats."""
    once = Once()
    for message in sent:
        read = read_message(message.to_message())
        if once.is_new(read):
            yield from read.elements


def assert_told_once_in_order(elements: list[Element]) -> None:
    """R-V, R-E and R-L of paper 004, of a stream that has ended."""
    vertices: set[str] = set()
    edges: set[tuple[str, str]] = set()
    expired: set[str] = set()
    for one in elements:
        if isinstance(one, SourceVertex | SinkVertex):
            assert one.id not in vertices
            vertices.add(one.id)
        elif isinstance(one, Edge):
            assert (one.output, one.input) not in edges
            assert {one.output, one.input} <= vertices
            assert not {one.output, one.input} & expired
            edges.add((one.output, one.input))
        else:
            assert isinstance(one, Expired)
            assert one.id in vertices
            assert one.id not in expired
            expired.add(one.id)
    assert expired == vertices
    assert {end for edge in edges for end in edge} == vertices
