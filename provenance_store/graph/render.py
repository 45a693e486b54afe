"""An answer for people: a tree or a table under a header with its verdict. It shows ids, the graph has no contents."""

from collections import Counter
from typing import TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from provenance_store.graph.answer import Answer
from provenance_store.model.account import Verdict

CHILDREN = 10
DEPTH = 40
ROWS = 1_000

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
    "partial": "a run crossed has lost messages: more belongs here",
}


def header(answer: Answer) -> Text:
    """The verdict, and how many records of which dataset."""
    text = Text.assemble((f" {answer.verdict} ", _BADGES[answer.verdict]), " ", (_EXPLANATIONS[answer.verdict], "dim"))
    counts = Counter(record.dataset or "(outside the lake)" for record in answer.records)
    text.append(
        f"\n{_number(len(answer.records), 'record')} {answer.direction} over {_number(len(answer.runs), 'run')}"
    )
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        text.append(f"\n  {name}  ", "cyan").append(f"{count:,}")
    return text


def as_tree(answer: Answer, *, children: int = CHILDREN) -> RenderableType:
    """A tree from each start. A record met before is not unfolded again, and of many siblings the first are shown."""
    following: Following = {}
    for edge in answer.edges:
        near, far = (edge.output, edge.input) if answer.direction == "backward" else (edge.input, edge.output)
        following.setdefault(near, {}).setdefault(far, []).append(edge.run)
    kept = {record.id for record in answer.records}
    seen: set[str] = set()
    return Group(header(answer), *(_tree_of(start, following, kept, seen, children) for start in answer.start))


def as_table(answer: Answer, *, rows: int = ROWS) -> RenderableType:
    """One line a record, the nearest first."""
    table = Table("depth", "dataset", "record", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for record in answer.records[:rows]:
        table.add_row(str(record.depth), Text(record.dataset or ""), Text(record.id, overflow="fold"))
    parts: list[RenderableType] = [header(answer), table]
    if len(answer.records) > rows:
        parts.append(Text(f"… and {len(answer.records) - rows:,} more; --json has them all", "dim"))
    return Group(*parts)


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
