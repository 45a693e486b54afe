"""`headwater streams follow-live` and `live`: running stream queries in the lake graph, and what may come of them."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from provenance_store.cli.console import print_json, print_table, show_progress
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.liveness import InRun

app = typer.Typer()

_MEANINGS = {
    "live": "live: more may be made from it",
    "unsure": "not surely expired: the run reads its dataset, and has not told of it",
    "expired": "expired: nothing more is made from it",
}


@app.command("follow-live")
def follow_live(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC…]", help="Topics, with * for anything; else headwater.live.*.")
    ] = None,
    *,
    until_quiet: Annotated[
        float | None, typer.Option(min=0.0, metavar="SECONDS", help="End when nothing has come for so long.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="The consumer group, whose members share the partitions.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for scripts, at the end.")] = False,
) -> None:
    """Follow running stream queries in the lake graph, until stopped; begun again, it goes on. Several share."""
    from provenance_store.graph import following
    from provenance_store.graph.queries import LakeGraph
    from provenance_store.services.application import Stop

    settings = load_settings()
    with LakeGraph(settings) as graph, show_progress("following") as say:
        done = following.follow_live(
            settings,
            graph,
            topics or following.TOPICS,
            group=group or following.GROUP,
            stopped=Stop(),
            until_quiet=until_quiet,
            tell=lambda progress: say(f"following: {progress}"),
        )
    if as_json:
        print_json(msgspec.to_builtins(done))
    else:
        typer.echo(f"took in {done}")


@app.command()
def live(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Records, as lake:… ids.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON for scripts.")] = False,
) -> None:
    """Show whether records may still lead to results of running stream queries."""
    from provenance_store.graph.queries import LakeGraph

    with LakeGraph(load_settings()) as graph:
        found = graph.liveness(ids)
    if as_json:
        print_json([{"id": one.id, "state": one.state, "runs": msgspec.to_builtins(one.runs)} for one in found])
        return
    rows = [(one.id, *cells) for one in found for cells in _cells(one.runs)]
    print_table("In running stream queries", ("record", "run", "query", "is", "event time", "watermark", "reach"), rows)


def _cells(runs: "list[InRun]") -> list[tuple[str, ...]]:
    if not runs:
        return [("", "", "unknown to running queries", "", "", "")]
    return [
        (one.run, one.query, _MEANINGS[one.state], _number(one.time), _number(one.watermark), _number(one.reach))
        for one in runs
    ]


def _number(milliseconds: int | None) -> str:
    from provenance_store.streams.event import END

    if milliseconds is None:
        return ""
    return "ended" if milliseconds >= END else str(milliseconds)
