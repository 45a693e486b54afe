"""A plan of a purge in Markdown, for whoever is asked to approve it. It names versions, and no record."""

from collections.abc import Iterator

from provenance_store.purge.plan import Plan, Step, StoredPlan


def as_markdown(stored: StoredPlan, *, reason: str = "") -> str:
    """All that has to be known to decide."""
    return "\n".join(_lines(stored, stored.plan, reason.strip()))


def _lines(stored: StoredPlan, plan: Plan, reason: str) -> Iterator[str]:
    selected, reached = (sum(getattr(step, name) for step in plan.steps) for name in ("selected", "reached"))
    yield f"**Plan {stored.id}** for selection {plan.selection}, asked for by **{_plain(plan.by)}**."
    yield ""
    yield f"Reason: {_plain(reason) or 'none was given'}"
    yield ""
    yield (
        f"{selected:,} selected records and {reached:,} that were made from them are touched. What is known of their "
        f"provenance is **{plan.verdict}**. The plan may be followed until {plan.expires[:16]} UTC."
    )
    yield ""
    yield "| version | policy | selected | reached | of | all of it, because |"
    yield "|---|---|---:|---:|---:|---|"
    yield from map(_row, plan.steps)
    for one in plan.holds:
        yield f"\n**Held**: {one.dataset}, {one.records:,} records, by {_plain(one.who)}: {_plain(one.why)}"
    if plan.incomplete:
        yield "\n**Provenance is incomplete, so records may be missed. An approval needs a reason under “Despite”:**\n"
        yield from (f"- {_plain(sentence)}" for sentence in plan.incomplete)
    for topic in plan.topics:
        yield f"\nTopic {topic.name} tells of these records until {topic.until or 'nobody knows when'}."


def _row(step: Step) -> str:
    cells = (step.reference, step.policy, f"{step.selected:,}", f"{step.reached:,}", f"{step.records:,}", step.whole)
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """A text that ends no cell and begins no element."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
