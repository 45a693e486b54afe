"""The lake graph on the command line: merging, questions about records, the lake from above, and Cypher."""

import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, show_bar
from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.graph.snapshot import Period
    from provenance_store.graph.trace import Trace

app = typer.Typer()

# A tree of more is not read by anyone, and would be held whole.
_TREE_RECORDS = 10_000
_SPOOL_BYTES = 16_000_000


class AnswerFormat(StrEnum):
    """How an answer is shown."""

    TREE = "tree"
    TABLE = "table"
    JSON = "json"
    PROV_JSON = "prov-json"
    PROV_N = "prov-n"
    PROV_XML = "prov-xml"
    DOT = "dot"
    SVG = "svg"


Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="The records to start from, as lake:… ids.")]
To = Annotated[str | None, typer.Option(metavar="DATASET", help="Keep only records of this dataset.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Go at most this many steps.")]
Format = Annotated[AnswerFormat, typer.Option("--format", help="How the answer is shown.")]
Since = Annotated[datetime | None, typer.Option(help="Follow only runs that were merged at this time (UTC) or later.")]
Until = Annotated[datetime | None, typer.Option(help="Follow only runs that were merged before this time (UTC).")]
Counts = Annotated[bool, typer.Option("--counts", help="Tell how many records of which dataset, and no more.")]
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]
Replay = Annotated[bool, typer.Option("--replay", help="Replay stream queries where their keys alone do not tell.")]


@app.command()
def merge(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `headwater reduce` wrote.")],
    as_json: Json = False,
) -> None:
    """Merge a reduced graph into the lake graph; the same one again changes nothing."""
    Account.read(folder)  # a wrong folder is told at once, before a server is asked
    with _lake_graph() as graph, show_bar("edges merged") as tell:
        merged = graph.merge(folder, progress=tell)
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
    replay: Replay = False,
    since: Since = None,
    until: Until = None,
    counts: Counts = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what records were made from, across all jobs."""
    from provenance_store.graph.trace import Question

    question = Question(tuple(dict.fromkeys(ids)), "backward", depth, to, sources, _period(since, until), replay)
    _show(lambda graph: graph.trace(question), form, counts=counts, as_json=as_json)


@app.command()
def forward(
    ids: Ids,
    *,
    to: To = None,
    depth: Depth = None,
    sinks: Annotated[bool, typer.Option("--sinks", help="Keep only records that no other was made from.")] = False,
    replay: Replay = False,
    since: Since = None,
    until: Until = None,
    counts: Counts = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what was made from records, across all jobs."""
    from provenance_store.graph.trace import Question

    question = Question(tuple(dict.fromkeys(ids)), "forward", depth, to, sinks, _period(since, until), replay)
    _show(lambda graph: graph.trace(question), form, counts=counts, as_json=as_json)


@app.command()
def between(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="The record that may depend on the other.")],
    source: Annotated[str, typer.Argument(metavar="INPUT", help="The record that it may depend on.")],
    *,
    since: Since = None,
    until: Until = None,
    counts: Counts = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show whether a record depends on another, by one of the shortest ways, and all records and edges on any way."""
    within = _within(since, until)
    _show(lambda graph: graph.between(output, source, **within), form, counts=counts, as_json=as_json)


@app.command()
def common(
    ids: Ids,
    *,
    since: Since = None,
    until: Until = None,
    counts: Counts = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what all of these records were made from."""
    within = _within(since, until)
    _show(lambda graph: graph.common(ids, **within), form, counts=counts, as_json=as_json)


@app.command()
def only_from(
    ids: Ids,
    *,
    since: Since = None,
    until: Until = None,
    counts: Counts = False,
    form: Format = AnswerFormat.TREE,
    as_json: Json = False,
) -> None:
    """Show what was made from these records and nothing else: without them it would be left without a source."""
    within = _within(since, until)
    _show(lambda graph: graph.only_from(ids, **within), form, counts=counts, as_json=as_json)


@app.command()
def find(
    dataset: Annotated[str, typer.Argument(help="The dataset that declares the key.")],
    as_json: Json = False,
) -> None:
    """Find the ids of a record by its key, in every version; the key is read from standard input, a component a line.

    A key that may be personal would be left in the history of a shell, were it an argument.
    """
    key = sys.stdin.read().splitlines()
    with _lake_graph() as graph:
        ids = graph.find(dataset, *key)
    if as_json:
        _print_json(msgspec.json.encode(ids))
    else:
        print(*ids, sep="\n", end="\n" if ids else "")


@app.command()
def datasets(as_json: Json = False) -> None:
    """Show the lake from above: which dataset feeds which, through which DIC, by how many runs and derivations."""
    from provenance_store.graph.render import as_feeds

    with _lake_graph() as graph:
        feeds = graph.datasets()
    if as_json:
        _print_json(msgspec.json.encode(feeds))
    else:
        make_console().print(as_feeds(feeds))


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


def _show(ask: "Callable[[LakeGraph], Trace]", form: AnswerFormat, *, counts: bool, as_json: bool) -> None:
    from provenance_store.graph.queries import settled

    with _lake_graph() as graph:
        if counts:
            settled(lambda: _show_counts(ask(graph), as_json=as_json))
        elif as_json or form is AnswerFormat.JSON:
            # Not straight to the reader: a run that is replaced meanwhile would leave half an answer there.
            with SpooledTemporaryFile(_SPOOL_BYTES) as file:
                settled(lambda: _write(ask(graph), file))
                file.seek(0)
                shutil.copyfileobj(file, sys.stdout.buffer)
        elif form in {AnswerFormat.TREE, AnswerFormat.TABLE}:
            make_console().print(settled(lambda: _rendered(ask(graph), form)))
        else:
            from provenance_store.export import write_answer

            print(write_answer(settled(lambda: ask(graph).answer()), form))


def _show_counts(trace: "Trace", *, as_json: bool) -> None:
    from provenance_store.graph.render import header

    if as_json:
        _print_json(msgspec.json.encode(trace.summary()))
    else:
        make_console().print(header(trace.summary()))


def _write(trace: "Trace", file: IO[bytes]) -> None:
    file.seek(0)
    file.truncate()
    trace.write_json(file)
    file.write(b"\n")


def _rendered(trace: "Trace", form: AnswerFormat) -> RenderableType:
    from provenance_store.graph.relations import Paths
    from provenance_store.graph.render import as_table, as_tree, path

    if form is AnswerFormat.TREE and len(trace) <= _TREE_RECORDS:
        shown = as_tree(trace.answer())
    else:
        shown = as_table(trace.summary(), trace.records())
    return Group(path(trace), shown) if isinstance(trace, Paths) else shown


def _period(since: datetime | None, until: datetime | None) -> "Period":
    from provenance_store.graph.snapshot import Period

    if since and until and since >= until:
        raise InputError(f"No run was merged from {since} on and before {until}: --since must be the earlier time.")
    return Period(*(time and time.replace(tzinfo=UTC) for time in (since, until)))


def _within(since: datetime | None, until: datetime | None) -> dict[str, datetime | None]:
    period = _period(since, until)
    return {"since": period.since, "until": period.until}


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
