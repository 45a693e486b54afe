"""`headwater streams jobs`, `results`, `sources` and `debug`: from a result that cannot be to how it came about."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from provenance_store.cli.console import print_json, print_table
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.streams.debugging import DebugStep, Session, Shown

app = typer.Typer()

Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]
ResultId = Annotated[str, typer.Argument(metavar="ID", help="A result of a stream query, as a lake:… id.")]


@app.command()
def jobs(as_json: Json = False) -> None:
    """List runs of stream queries: those that are under way, and those that have ended."""
    from provenance_store.streams import service

    settings = load_settings()
    found = service.jobs(settings.home, settings.lake)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    rows = [
        (
            one.run,
            one.query,
            one.state,
            _time(one.until),
            f"{one.late:,}",
            f"{one.rejected:,}",
            ", ".join(one.read),
            f"{one.heard:%Y-%m-%d %H:%M:%S}",
        )
        for one in found
    ]
    columns = ("run", "query", "is", "nothing comes before", "late", "rejected", "read", "last heard of (UTC)")
    print_table("Runs of stream queries", columns, rows)


@app.command()
def results(
    run: Annotated[str, typer.Argument(metavar="RUN", help="One of `headwater streams jobs`.")],
    *,
    dataset: Annotated[str | None, typer.Option(help="Only the results in this dataset.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most of them.")] = 20,
    around: Annotated[
        int | None, typer.Option(metavar="MS", help="Only those around this time, in milliseconds.")
    ] = None,
    within: Annotated[int, typer.Option(min=0, metavar="MS", help="How far around it.")] = 60_000,
    as_json: Json = False,
) -> None:
    """Show the newest results of a run with their contents."""
    from provenance_store.streams import service

    found = service.results(load_settings().lake, run, dataset, limit=limit, around=around, within=within)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    rows = [(one.id, _time(one.time), _text(one.content)) for one in found]
    print_table(f"Results of {run}, the newest first", ("result", "time (UTC)", "content"), rows)


@app.command()
def sources(result: ResultId, as_json: Json = False) -> None:
    """Show what a result was made from, and the last checkpoint before each of these took part."""
    from provenance_store.streams import service
    from provenance_store.streams.keeping import keeper_of

    settings = load_settings()
    found = service.sources(settings.home, settings.lake, result, keeper_of(settings))
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    rows = [
        (one.id, _time(one.time), _text(one.content), str(one.step), _checkpoint(one.checkpoint))
        for one in found.sources
    ]
    title = f"Sources of {result}" if found.exact else f"What {result} may have been made from"
    print_table(title, ("source", "time (UTC)", "content", "step", "checkpoint before"), rows)
    if found.note:
        typer.echo(found.note)


@app.command()
def debug(
    result: ResultId,
    *,
    step: Annotated[bool, typer.Option("--step", help="One step at a time: Enter for the next.")] = False,
    as_json: Json = False,
) -> None:
    """Make a result again from the checkpoint before its sources, and show every operator at work."""
    from provenance_store.streams import service
    from provenance_store.streams.keeping import keeper_of

    settings = load_settings()
    session = service.replay(settings.home, settings.lake, result, keeper_of(settings))
    if as_json:
        print_json(msgspec.to_builtins(session))
    else:
        _show(session, one_by_one=step)
    if not session.same:
        raise typer.Exit(1)


def _show(session: "Session", *, one_by_one: bool) -> None:
    begins = "the beginning" if session.checkpoint is None else f"the checkpoint behind step {session.checkpoint}"
    given = "what it may be made from" if session.given == "contributing" else "all of its lane"
    typer.echo(f"{session.result}\n  {_text(session.content)}")
    typer.echo(f"made by {session.query}, run {session.run}")
    typer.echo(f"replayed from {begins}, given {given}: {session.events:,} events, {len(session.steps):,} steps")
    typer.echo("* contributed to the result\n")
    for number, one in enumerate(session.steps, start=1):
        typer.echo("\n".join(_lines(one, len(session.steps))))
        if one_by_one and number < len(session.steps):
            typer.echo("Enter for the next step, Ctrl-D to end … ", nl=False, err=True)
            if not sys.stdin.readline():
                break
    typer.echo("It came back as it stands in the lake." if session.same else "It came back as another.")


def _lines(step: "DebugStep", of: int) -> Iterator[str]:
    yield f"[{step.number}/{of}] {step.operator} ({step.operation}) at {_time(step.at)}"
    for number, window in enumerate(step.inputs, start=1):
        name = "inputs" if len(step.inputs) == 1 else f"inputs {number}"
        yield from _events(name, window)
    yield from _events("outputs", step.outputs)
    for key in step.before:
        named = f"remembers {key}" if key else "remembers"
        yield f"  {named}  {_text(step.before[key])} → {_text(step.after[key])}"
    yield ""


def _events(name: str, events: "Sequence[Shown]") -> Iterator[str]:
    yield f"  {name}" if events else f"  {name}  none"
    for one in events:
        origin = f"  {one.id}" if one.id else ""
        yield f"    {'*' if one.contributes else ' '} {_time(one.timestamp)}  {_text(one.content)}{origin}"


def _text(content: Any) -> str:
    return "" if content is None else msgspec.json.encode(content).decode()


def _checkpoint(step: int | None) -> str:
    return "the beginning" if step is None else f"step {step}"


def _time(milliseconds: int | None) -> str:
    """An event's time as people read it; a number where it is no date."""
    from provenance_store.streams.event import END

    if milliseconds is None:
        return ""
    if milliseconds >= END:
        return "all"
    try:
        at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return at.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
