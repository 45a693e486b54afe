"""`headwater trace`: questions about many thousands of records at once, by the Spark application in its own process."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from provenance_store.cli.console import make_console, show_progress
from provenance_store.export.bulk import BulkSummary
from provenance_store.services.application import listen

app = typer.Typer()
trace_app = typer.Typer(help="Trace many thousands of records at once, on Spark, without Neo4j.", no_args_is_help=True)
app.add_typer(trace_app, name="trace")

Reduced = Annotated[
    list[Path], typer.Argument(metavar="DIR…", help="Folders that `headwater reduce` wrote, or that hold such folders.")
]
Starts = Annotated[Path, typer.Option(metavar="FILE", help="The records to start from: a line each, or Parquet.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder for the answers.")]
To = Annotated[str | None, typer.Option(metavar="DATASET", help="Keep only records of this dataset.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Go at most this many steps.")]
Edges = Annotated[bool, typer.Option("--edges", help="Write the dependencies that were crossed, too.")]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON, for scripts.")]


@trace_app.command()
def backward(
    reduced: Reduced,
    *,
    starts: Starts,
    out: Out,
    to: To = None,
    depth: Depth = None,
    sources: Annotated[bool, typer.Option("--sources", help="Keep only records that were made from no other.")] = False,
    edges: Edges = False,
    as_json: Json = False,
) -> None:
    """Write what records were made from, across all jobs."""
    options = {"--starts": starts, "--out": out, "--to": to, "--depth": depth, "--ends": sources, "--edges": edges}
    _show(_trace("backward", reduced, options, out), out, as_json=as_json)


@trace_app.command()
def forward(
    reduced: Reduced,
    *,
    starts: Starts,
    out: Out,
    to: To = None,
    depth: Depth = None,
    sinks: Annotated[bool, typer.Option("--sinks", help="Keep only records that no other was made from.")] = False,
    edges: Edges = False,
    as_json: Json = False,
) -> None:
    """Write what was made from records, across all jobs."""
    options = {"--starts": starts, "--out": out, "--to": to, "--depth": depth, "--ends": sinks, "--edges": edges}
    _show(_trace("forward", reduced, options, out), out, as_json=as_json)


def _trace(direction: str, reduced: list[Path], options: Mapping[str, object], out: Path) -> BulkSummary:
    given = [
        name if value is True else f"{name}={value}" for name, value in options.items() if value not in {None, False}
    ]
    command = [sys.executable, "-m", "spark_apps.lineage", direction, *given, "--", *map(str, reduced)]
    with show_progress("tracing") as say:
        for _ in listen(command, f"The {direction} trace", say):
            pass
    return BulkSummary.read(out)


def _show(summary: BulkSummary, out: Path, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(msgspec.json.encode(summary).decode() + "\n")
        return
    console = make_console()
    table = Table("run", "dic", "verdict", box=None, header_style="bold")
    for run in summary.runs:
        table.add_row(run.run, run.dic, run.verdict)
    console.print(
        f"{summary.verdict}: {summary.records:,} records {summary.direction} of {summary.starts:,} starts over "
        f"{len(summary.runs):,} runs, in {summary.seconds:.1f} s, in {out}",
        markup=False,
    )
    console.print(table)
    for folder in summary.unfinished:
        make_console(stderr=True).print(f"Left out {folder}: it holds no finished reduction.", markup=False)
