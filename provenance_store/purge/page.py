"""A plan as a page for people: tables, and a picture of the touched versions. It needs nothing from elsewhere."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape

from provenance_store.export.svg import write_svg
from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord
from provenance_store.purge.plan import Plan, Step

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#1f2328;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #d1d9e0;vertical-align:top}"
    "td.number{text-align:right;font-variant-numeric:tabular-nums}.picture{overflow-x:auto}"
    ".stop{border-left:4px solid #cf222e;padding:.2rem 1rem;background:#fff5f5}"
    ".doubt{border-left:4px solid #9a6700;padding:.2rem 1rem;background:#fff8e5}"
)
_RULES = "default-src 'none'; style-src 'unsafe-inline'"
_POLICIES = {
    "delete": "deleted",
    "redact": "stripped of the fields that the catalogue names",
    "recompute": "made anew from what is left of their inputs",
}


def write_page(plan: Plan) -> str:
    """The whole page."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_RULES}">'
    yield f"<title>Purge of {escape(plan.selection)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>Purge of selection {escape(plan.selection)}</h1>"
    yield f"<p>{_summary(plan)}</p>"
    yield f"<p>Planned by {escape(plan.by)} on {_time(plan.made)}; not to be followed after {_time(plan.expires)}.</p>"
    yield from _warnings(plan)
    yield "<h2>What happens to each version, in this order</h2>"
    yield from _table(
        ["version", "selected", "reached", "of", "they are", "made by", "all of it, because", "records read"],
        map(_cells, plan.steps),
    )
    if plan.steps:
        yield '<h2>How they depend on each other</h2><div class="picture">'
        yield write_svg(_picture(plan))
        yield "</div>"
    if plan.gone:
        yield "<h2>No longer in the lake</h2>"
        yield from _list(plan.gone)
    if plan.topics:
        yield "<h2>What tells of these records until it expires</h2>"
        yield from _table(
            ["topic", "expired by"],
            ((topic.name, _time(topic.until) if topic.until else "not known") for topic in plan.topics),
        )
    if plan.forgets:
        yield "<h2>Stream runs whose checkpoints and cached events are removed</h2>"
        yield from _list(plan.forgets)
    yield "</body></html>"


def _summary(plan: Plan) -> str:
    selected, reached = (sum(getattr(step, name) for step in plan.steps) for name in ("selected", "reached"))
    return (
        f"{selected:,} selected records, and {reached:,} that were made from them, in {len(plan.steps):,} versions of "
        f"{len({step.dataset for step in plan.steps}):,} datasets. What is known of their provenance is "
        f"<strong>{escape(plan.verdict)}</strong>."
    )


def _warnings(plan: Plan) -> Iterator[str]:
    if plan.holds:
        yield '<div class="stop"><h2>Held: this plan cannot be approved</h2>'
        yield from _list(f"{one.dataset}, {one.records:,} records: {one.why} ({one.who})" for one in plan.holds)
        yield "</div>"
    if plan.incomplete:
        yield '<div class="doubt"><h2>Provenance is incomplete: records may be missed</h2>'
        yield from _list(plan.incomplete)
        yield "</div>"


def _cells(step: Step) -> Sequence[str | int]:
    made_by = f"{step.run} ({step.dic})" if step.run else ""
    reads = step.reads if step.policy == "recompute" else ""
    become = _POLICIES[step.policy]
    if step.policy == "recompute" and step.selected:
        become += "; selected ones are deleted"
    if step.subtracts:
        become += "; by taking away what the deleted records added"
    return step.reference, step.selected, step.reached, step.records, become, made_by, step.whole, reads


def _picture(plan: Plan) -> Answer:
    """The versions as if they were records: what was selected first, then what was made from it."""
    labels = {step.reference: f"{step.reference}: {step.policy} {_share(step)}" for step in plan.steps}
    starts = [labels[step.reference] for step in plan.steps if step.selected]
    edges = [
        AnsweredEdge(labels[step.reference], labels[source], step.run or "")
        for step in plan.steps
        for source in step.inputs
        if source in labels
    ]
    others = [label for label in labels.values() if label not in starts]
    return Answer(
        start=starts,
        direction="forward",
        verdict=plan.verdict,
        records=[AnsweredRecord(label, None, 1) for label in others],
        edges=edges,
        runs=[],
    )


def _share(step: Step) -> str:
    return "all" if step.whole else f"{step.selected + step.reached:,} of {step.records:,}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str | int]]) -> Iterator[str]:
    yield f"<table><thead><tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(map(_cell, row))}</tr>"
    yield "</tbody></table>"


def _cell(value: str | int) -> str:
    return f'<td class="number">{value:,}</td>' if isinstance(value, int) else f"<td>{escape(value)}</td>"


def _list(items: Iterable[str]) -> Iterator[str]:
    yield f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
