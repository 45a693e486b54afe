"""An answer as a picture: records in columns by their distance from the start, lines for what was made from what."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from xml.sax.saxutils import escape

from provenance_store.export.layers import arrange
from provenance_store.export.names import plain
from provenance_store.graph.answer import Answer

RECORDS = 200

_WIDTH, _HEIGHT = 300, 22
_ACROSS, _DOWN = 420, 30
_MARGIN, _HEADER = 20, 60
_CHARACTERS = 42  # as many as a box is wide
_COLOURS = {"complete": "#1a7f37", "unknown": "#9a6700", "partial": "#cf222e"}
_STYLE = (
    "text{font:11px monospace;fill:#1f2328}.note{fill:#59636e}rect{fill:#f6f8fa;stroke:#818b98}"
    ".start{stroke:#1f2328;stroke-width:2}.between{stroke-dasharray:4 3}path{fill:none;stroke:#818b98}"
)
_ARROW = (
    '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" style="fill:#818b98;stroke:none"/></marker></defs>'
)


class Place(NamedTuple):
    """The upper left corner of a box."""

    x: int
    y: int


def write_svg(answer: Answer, *, most: int = RECORDS) -> str:
    """The nearest records, at most so many, and how many more there are."""
    return "\n".join(_lines(answer, most)) + "\n"


def _lines(answer: Answer, most: int) -> Iterator[str]:
    layers = arrange(answer)
    shown = _nearest(layers, most)
    bottom = max(place.y for place in shown.values()) + _DOWN
    width = max(place.x for place in shown.values()) + _WIDTH + _MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + _DOWN}">'
    yield f'<style>{_STYLE}</style>{_ARROW}<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>'
    verdict = f'<tspan style="fill:{_COLOURS[answer.verdict]}">{answer.verdict}</tspan>'
    yield f'<text x="{_MARGIN}" y="{_MARGIN}">{answer.direction}, {verdict}</text>'
    yield _note(_MARGIN + 16, "arrows lead to what a record was made from")
    yield from _edges(answer, shown)
    yield from _boxes(answer, shown)
    if hidden := sum(map(len, layers)) - len(shown):
        yield _note(bottom + _HEIGHT // 2, f"and {hidden:,} more, which other formats hold")
    yield "</svg>"


def _nearest(layers: list[list[str]], most: int) -> dict[str, Place]:
    places = (
        (record, Place(_MARGIN + column * _ACROSS, _HEADER + row * _DOWN))
        for column, layer in enumerate(layers)
        for row, record in enumerate(layer)
    )
    return dict(islice(places, most))


def _edges(answer: Answer, shown: dict[str, Place]) -> Iterator[str]:
    runs: dict[tuple[str, str], list[str]] = {}
    for edge in answer.edges:
        if edge.output in shown and edge.input in shown:
            runs.setdefault((edge.output, edge.input), []).append(edge.label)
    for (output, source), made_by in runs.items():
        here, there = shown[output], shown[source]
        # Out of the side that faces the other; within a column, or back, around the right.
        ahead = here.x < there.x
        x1 = here.x + (_WIDTH if ahead or here.x == there.x else 0)
        x2 = there.x + (0 if ahead else _WIDTH)
        y1, y2 = here.y + _HEIGHT // 2, there.y + _HEIGHT // 2
        bend = (_ACROSS - _WIDTH) // 2
        c1 = x1 - bend if here.x > there.x else x1 + bend
        c2 = x2 - bend if ahead else x2 + bend
        yield (
            f'<path marker-end="url(#to)" d="M{x1} {y1}C{c1} {y1} {c2} {y2} {x2} {y2}">'
            f"<title>{_text(', '.join(made_by))}</title></path>"
        )


def _boxes(answer: Answer, shown: dict[str, Place]) -> Iterator[str]:
    starts, kept = set(answer.start), {record.id for record in answer.records}
    for record, (x, y) in shown.items():
        kind = "start" if record in starts else "reached" if record in kept else "between"
        yield (
            f'<g><title>{_text(record)}</title><rect class="{kind}" x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="4"/><text x="{x + 6}" y="{y + 15}">{_text(_shorten(record))}</text></g>'
        )


def _shorten(record: str) -> str:
    # The dataset stands at the beginning, and what tells neighbours apart at the end.
    half = _CHARACTERS // 2
    return record if len(record) <= _CHARACTERS else f"{record[: half - 1]}…{record[-half:]}"


def _note(y: int, text: str) -> str:
    return f'<text class="note" x="{_MARGIN}" y="{y}">{text}</text>'


def _text(text: str) -> str:
    return escape(plain(text))
