"""An answer in Graphviz's DOT: records as boxes, arrows from a record to what it was made from."""

from collections.abc import Iterator

from provenance_store.export.layers import arrange
from provenance_store.export.names import plain
from provenance_store.graph.answer import Answer


def write_dot(answer: Answer) -> str:
    """All of the answer; starts are drawn bold, and records that a filter left out dashed."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: Answer) -> Iterator[str]:
    yield "digraph answer {"
    yield f"  graph [label={_text(f'{answer.direction}, {answer.verdict}')}, rankdir={_RANKS[answer.direction]}];"
    yield "  node [shape=box, fontname=monospace];"
    kept = {record.id for record in answer.records}
    numbers: dict[str, int] = {}
    for number, record in enumerate(record for layer in arrange(answer) for record in layer):
        numbers[record] = number
        style = "bold" if record in answer.start else "solid" if record in kept else "dashed"
        yield f"  r{number} [label={_text(record)}, style={style}];"
    for edge in answer.edges:
        yield f"  r{numbers[edge.output]} -> r{numbers[edge.input]} [label={_text(edge.label)}];"
    yield "}"


_RANKS = {"backward": "LR", "forward": "RL"}


def _text(text: str) -> str:
    # Graphviz reads backslashes in labels, and entities as HTML has them.
    escaped = plain(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
