"""`headwater merge`, `backward`, `forward` and `cypher`: the lake graph on the command line."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console
from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.answer import Answer
    from provenance_store.graph.queries import LakeGraph

app = typer.Typer()


class AnswerFormat(StrEnum):
    """How an answer is shown."""

    TREE = "tree"
    TABLE = "table"
    JSON = "json"


Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="The records to start from, as lake:… ids.")]
To = Annotated[str | None, typer.Option(metavar="DATASET", help="Keep only records of this dataset.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Go at most this many steps.")]
Format = Annotated[AnswerFormat, typer.Option("--format", help="How the answer is shown.")]
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]


@app.command()
def merge(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `headwater reduce` wrote.")],
    as_json: Json = False,
) -> None:
    """Merge a reduced graph into the lake graph; the same one again changes nothing."""
    Account.read(folder)  # a wrong folder is told at once, before a server is asked
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _lake_graph() as graph, Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("edges merged", total=None)
        merged = graph.merge(folder, progress=lambda done, total: progress.update(task, completed=done, total=total))
    if as_json:
        _print_json(msgspec.json.encode(merged))
        return
    what = "merged" if merged.changed else "was there already, nothing changed"
    replaced = ", in place of its earlier graph" if merged.replaced else ""
    print(f"Run {merged.run}, generation {merged.generation}: {merged.edges:,} edges {what}{replaced}.")


@app.command()
def backward(
    ids: Ids,
    *,
    to: To = None,
    depth: Depth = None,
    sources: Annotated[bool, typer.Option("--sources", help="Keep only records that were made from no other.")] = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what records were made from, across all jobs."""
    with _lake_graph() as graph:
        answer = graph.backward(ids, depth=depth, to=to, sources_only=sources)
    _show(answer, AnswerFormat.JSON if as_json else form)


@app.command()
def forward(
    ids: Ids,
    *,
    to: To = None,
    depth: Depth = None,
    sinks: Annotated[bool, typer.Option("--sinks", help="Keep only records that no other was made from.")] = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what was made from records, across all jobs."""
    with _lake_graph() as graph:
        answer = graph.forward(ids, depth=depth, to=to, sinks_only=sinks)
    _show(answer, AnswerFormat.JSON if as_json else form)


@app.command()
def cypher(
    query: Annotated[str, typer.Argument(help="A query that reads; `-` takes it from standard input.")],
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter: JSON, or else plain text.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a read-only Cypher query: it can neither write, nor load files, nor administer the server."""
    text = sys.stdin.read() if query == "-" else query
    parameters = dict(_parameter(given) for given in param or ())
    with _lake_graph() as graph:
        found = graph.cypher(text, parameters)
    if as_json:
        _print_json(msgspec.json.encode([dict(zip(found.columns, row, strict=True)) for row in found.rows]))
        return
    table = Table(*map(escape, found.columns), box=None, header_style="bold")
    for row in found.rows:
        cells = (value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in row)
        table.add_row(*(Text(cell, overflow="fold") for cell in cells))
    make_console().print(table)


def _lake_graph() -> "LakeGraph":
    from provenance_store.graph.queries import LakeGraph  # neo4j takes a moment to import

    return LakeGraph(load_settings())


def _show(answer: "Answer", form: AnswerFormat) -> None:
    from provenance_store.graph.render import as_table, as_tree

    if form is AnswerFormat.JSON:
        _print_json(answer.to_json())
    else:
        make_console().print(as_tree(answer) if form is AnswerFormat.TREE else as_table(answer))


def _parameter(given: str) -> tuple[str, object]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise InputError(f"{given!r} is not a parameter: write NAME=VALUE.")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


def _print_json(line: bytes) -> None:
    sys.stdout.write(line.decode() + "\n")
