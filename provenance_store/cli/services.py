"""`headwater up`, `down`, `status` and `fetch`: the local services."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from provenance_store.cli.console import make_console, show_progress
from provenance_store.services import jvm, lifecycle, registry
from provenance_store.services.service import State, Status
from provenance_store.settings import load_settings

app = typer.Typer()

Names = Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(registry.SERVICES)}.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="For scripts: one JSON document on standard output.")]

_COLOURS = {State.RUNNING: "green", State.STOPPED: "dim", State.STALE: "yellow", State.NOT_ANSWERING: "red"}


@app.command()
def up(names: Names = None, *, as_json: AsJson = False) -> None:
    """Start local services and wait until they answer: Kafka and Neo4j, or those named."""
    settings = load_settings()
    rows, hints = [], []
    with show_progress() as say:
        for service in registry.services(settings, names or registry.DEFAULT):
            if not names and (setting := service.configured_elsewhere):
                say(
                    f"{service.name} is left out: {setting} names another one (`headwater up {service.name}` starts it)"
                )
                continue
            rows.append(lifecycle.up(service, say))
            hints += [service.hint] if service.hint else []
    _show(rows, as_json=as_json)
    for hint in hints if not as_json else ():
        typer.echo(hint)


@app.command()
def down(
    names: Names = None,
    *,
    purge_data: Annotated[bool, typer.Option(help="Also remove data, logs and generated secrets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop local services: all, or those named."""
    with show_progress() as say:
        chosen = registry.services(load_settings(), names or ())
        rows = [lifecycle.down(service, say, purge_data=purge_data) for service in reversed(chosen)]
    _show(rows[::-1], as_json=as_json)


@app.command()
def status(names: Names = None, *, as_json: AsJson = False) -> None:
    """Show what the local services are doing."""
    rows = [lifecycle.status(service) for service in registry.services(load_settings(), names or ())]
    if as_json:
        _show(rows, as_json=True)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("service", "state", "pid", "address", "since"):
        table.add_column(heading, no_wrap=True)
    table.add_column("data", overflow="fold")
    for row in rows:
        pid = "" if row.pid is None else str(row.pid)
        table.add_row(
            row.name, f"[{_COLOURS[row.state]}]{row.state}[/]", pid, row.address, row.since or "", _near(row.data)
        )
    make_console().print(table)


@app.command()
def fetch(
    parts: Annotated[
        list[str] | None, typer.Argument(help="Of kafka, neo4j, hadoop, spark.", show_default=False)
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Fetch the JVM parts ahead of their first use: all, or those named."""
    settings = load_settings()
    with show_progress() as say:
        folders = {part: str(jvm.fetch(settings, part, say)) for part in parts or jvm.parts()}
    if as_json:
        typer.echo(json.dumps(folders))
        return
    for part, folder in folders.items():
        typer.echo(f"{part:<8}{folder}")


def _near(folder: str) -> str:
    """A path as it is written from here, where that is shorter to read."""
    path = Path(folder)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else folder


def _show(rows: Sequence[Status], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
        return
    console = Console(soft_wrap=True, highlight=False)
    for row in rows:
        pid = "" if row.pid is None else f"  pid {row.pid}"
        console.print(f"{row.name:<8}[{_COLOURS[row.state]}]{row.state}[/]  {row.address}{pid}")
