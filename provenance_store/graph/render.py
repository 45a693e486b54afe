"""An answer for people: a tree or a table under a header with its verdict. It shows ids, the graph has no contents."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from provenance_store.graph.answer import Answer, AnsweredRecord, Feed, Summary
from provenance_store.graph.relations import Paths
from provenance_store.model.account import Verdict

CHILDREN = 10
DEPTH = 40
ROWS = 1_000
NAMED = 5

# From the nearer record to each further one, and the runs that link the two.
Following: TypeAlias = dict[str, dict[str, list[str]]]

_BADGES: dict[Verdict, str] = {
    "complete": "bold black on green",
    "unknown": "bold black on yellow",
    "partial": "bold white on red",
}
_EXPLANATIONS: dict[Verdict, str] = {
    "complete": "every run crossed has all its provenance",
    "unknown": "a run crossed sent no manifest: more may belong here",
    "partial": "a run crossed has lost messages or was pruned: more belongs here",
}


def header(summary: Summary) -> Text:
    """The verdict, and how many records of which dataset."""
    verdict = summary.verdict
    text = Text.assemble((f" {verdict} ", _BADGES[verdict]), " ", (_EXPLANATIONS[verdict], "dim"))
    text.append(f"\n{_number(summary.records, 'record')} {summary.direction} over {_number(len(summary.runs), 'run')}")
    if pruned := [run.run for run in summary.runs if run.pruned]:
        more = f" and {len(pruned) - NAMED:,} more" if len(pruned) > NAMED else ""
        text.append(f", of which pruned: {', '.join(pruned[:NAMED])}{more}")
    if summary.accuracy is not None:
        text.append(f"\n{summary.accuracy:.0%} of them surely; others may not belong here: ask with --replay", "yellow")
    for count in summary.datasets:
        text.append(f"\n  {count.dataset or '(outside the lake)'}  ", "cyan").append(f"{count.records:,}")
    return text


def as_tree(answer: Answer, *, children: int = CHILDREN) -> RenderableType:
    """A tree from each start. A record met before is not unfolded again, and of many siblings the first are shown."""
    following: Following = {}
    for edge in answer.edges:
        near, far = (edge.output, edge.input) if answer.direction == "backward" else (edge.input, edge.output)
        following.setdefault(near, {}).setdefault(far, []).append(edge.label)
    kept = {record.id for record in answer.records}
    seen: set[str] = set()
    return Group(
        header(answer.summary()), *(_tree_of(start, following, kept, seen, children) for start in answer.start)
    )


def as_table(summary: Summary, records: Iterable[AnsweredRecord], *, rows: int = ROWS) -> RenderableType:
    """One line a record, the nearest first; of many the first are read."""
    table = Table("depth", "dataset", "record", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for record in islice(records, rows):
        table.add_row(str(record.depth), Text(record.dataset or ""), Text(record.id, overflow="fold"))
    parts: list[RenderableType] = [header(summary), table]
    if summary.records > rows:
        parts.append(Text(f"… and {summary.records - rows:,} more; --json has them all", "dim"))
    return Group(*parts)


def path(paths: Paths) -> RenderableType:
    """Whether there is a way, and one of the shortest."""
    output, source = paths.question.start[0], paths.source
    if not paths.depends:
        return Text(f"{output} does not depend on {source}.", overflow="fold")
    steps = [Text(f"{'  ' * depth}{record}", overflow="fold") for depth, record in enumerate(paths.shortest())]
    return Group(Text(f"{output} depends on {source}, at the shortest:", overflow="fold"), *steps, "")


def as_feeds(feeds: Iterable[Feed]) -> RenderableType:
    """The lake from above: one line for each dataset that feeds another through a DIC."""
    table = Table("dataset", "feeds", "through", "runs", "derivations", box=None, header_style="bold")
    for column in table.columns[3:]:
        column.justify = "right"
    for feed in feeds:
        table.add_row(Text(feed.source), Text(feed.target), Text(feed.dic), f"{feed.runs:,}", f"{feed.edges:,}")
    return table


def _tree_of(start: str, following: Following, kept: set[str], seen: set[str], children: int) -> Tree:
    label = Text(start, "bold", overflow="fold")
    if start in seen:
        return Tree(label.append("  see above", "dim"))
    seen.add(start)
    root = Tree(label, guide_style="dim")
    # By level, not down one branch after the other: a record then unfolds where it is nearest to a start.
    level = [(start, root)]
    for _ in range(DEPTH):
        below: list[tuple[str, Tree]] = []
        for near, branch in level:
            runs = following.get(near, {})
            for far in list(runs)[:children]:
                label = Text.assemble((far, "" if far in kept else "dim"), (f"  {', '.join(runs[far])}", "dim cyan"))
                if far not in seen:
                    seen.add(far)
                    below.append((far, branch.add(label)))
                else:
                    # A leaf has nothing to look up above.
                    branch.add(label.append("  see above", "dim") if far in following else label)
            if len(runs) > children:
                branch.add(Text(f"… and {len(runs) - children:,} more", "dim"))
        level = below
    for near, branch in level:
        if near in following:
            branch.add(Text(f"… deeper than {DEPTH} steps; --json has it all", "dim"))
    return root


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
