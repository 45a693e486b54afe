"""`headwater purge select, plan, show, approve`: what happens before anything is changed."""

import csv
import getpass
import io
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, print_json, show_progress
from provenance_store.cli.purge.options import By, Json, Plan
from provenance_store.errors import InputError
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.purge.plan import Step, StoredPlan
    from provenance_store.purge.selection import Selection

commands = typer.Typer()


@commands.command()
def select(
    *,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="The dataset of the predicate or keys.")] = None,
    where_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Records for which the Spark SQL expression in FILE is true; - reads stdin."),
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Records with the keys in FILE, a line each as in CSV; - reads stdin."),
    ] = None,
    ids_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Records with the ids in FILE, a line each; - reads stdin.")
    ] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Select records, in all versions of a dataset or by their ids, and keep their ids alone.

    A predicate or key may be personal: it is read from a file or standard input, and is not kept anywhere.
    """
    settings, who = load_settings(), by or getpass.getuser()
    given = [file for file in (where_file, keys_file, ids_file) if file is not None]
    if len(given) != 1:
        raise InputError("Give one of --where-file, --keys-file and --ids-file.")
    if (ids_file is None) != (dataset is not None):
        raise InputError("--dataset goes with --where-file and --keys-file: ids name their datasets themselves.")
    text = _read(given[0])
    from provenance_store.purge.selection import open_selection, select_ids, select_keys

    if dataset is None:
        selection = select_ids(settings, filter(None, map(str.strip, text.splitlines())), by=who)
    elif keys_file is not None:
        keys = [tuple(row) for row in csv.reader(io.StringIO(text)) if row]
        selection = select_keys(settings, dataset, keys, by=who)
    else:
        selection = open_selection(settings.lake, _select_where(dataset, text, by=who))
    _show_selection(selection, as_json=as_json)


def _select_where(dataset: str, predicate: str, *, by: str) -> str:
    from provenance_store.services.application import listen

    command = [sys.executable, "-m", "spark_apps.purge.select", f"--dataset={dataset}", f"--by={by}"]
    with show_progress("selecting") as say:
        (told,) = listen(command, "The selection", say, given=predicate)
    return str(told["selection"])


@commands.command()
def plan(
    selection: Annotated[str, typer.Argument(metavar="SELECTION", help="The id of a selection, s-….")],
    *,
    valid_days: Annotated[float, typer.Option(min=0, help="After so many days the plan expires.")] = 7.0,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Plan what a purge would do with selected records and with all that was made from them; nothing is changed."""
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.purge.planning import make_plan

    settings, who = load_settings(), by or getpass.getuser()
    with LakeGraph(settings, who=by) as graph, show_progress("planning") as say:
        made = make_plan(settings, graph, selection, by=who, valid=timedelta(days=valid_days), say=say)
    _show_plan(made, as_json=as_json)


@commands.command()
def show(plan: Plan, as_json: Json = False) -> None:
    """Show a plan that was made, once it is checked to be as it was made."""
    from provenance_store.purge.plan import open_plan

    _show_plan(open_plan(load_settings().lake, plan), as_json=as_json)


@commands.command()
def approve(
    plan: Plan,
    *,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who answers for it.")],
    despite: Annotated[
        str, typer.Option(metavar="REASON", help="Why, although provenance is incomplete and records may be missed.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Approve a plan that still holds."""
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.purge.approval import approve as approve_plan

    settings = load_settings()
    with LakeGraph(settings, who=by) as graph:
        given = approve_plan(settings, graph, plan, by=by, despite=despite)
    if as_json:
        print_json(msgspec.to_builtins(given))
        return
    make_console().print(f"Plan {plan} is approved by {given.who}: `headwater purge apply {plan}`.", markup=False)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not text in UTF-8.") from None


def _show_selection(selection: "Selection", *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(selection))
        return
    console = make_console()
    counts = ", ".join(f"{count:,} of {dataset}" for dataset, count in selection.datasets.items())
    console.print(f"Selected {counts}: {selection.id}. Next: `headwater purge plan {selection.id}`.", markup=False)


def _show_plan(stored: "StoredPlan", *, as_json: bool) -> None:
    if as_json:
        print_json({"id": stored.id, "digest": stored.digest, **msgspec.to_builtins(stored.plan)})
        return
    told, console = stored.plan, make_console()
    table = Table(box=None, header_style="bold")
    for name in ("version", "policy"):
        table.add_column(name)
    for name in ("selected", "reached", "of", "reads"):
        table.add_column(name, justify="right")
    table.add_column("all of it, because", overflow="fold")
    for step in told.steps:
        table.add_row(*_cells(step))
    console.print(
        f"Plan {stored.id} for selection {told.selection}, {told.verdict}, until {told.expires}", markup=False
    )
    console.print(table)
    for one in told.holds:
        console.print(Text(f"Held: {one.dataset}, {one.records:,} records, by {one.who}: {one.why}", "red"))
    for sentence in told.incomplete:
        console.print(Text(f"Incomplete: {sentence}", "yellow"))
    for version in told.gone:
        console.print(Text(f"No longer in the lake: {version}"))
    for topic in told.topics:
        console.print(Text(f"Topic {topic.name} tells of these records until {topic.until or 'nobody knows when'}."))
    for run in told.forgets:
        console.print(Text(f"Checkpoints and cached events of stream run {run} will be removed."))
    console.print(Text(f"For people: {stored.path / 'plan.html'}"))


def _cells(step: "Step") -> list[Text]:
    reads = f"{step.reads:,}" if step.policy == "recompute" else ""
    counts = (f"{step.selected:,}", f"{step.reached:,}", f"{step.records:,}", reads)
    return [Text(cell) for cell in (step.reference, step.policy, *counts, step.whole)]
