"""`headwater prune`: retention of old runs in the lake graph."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, show_bar
from provenance_store.errors import InputError
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.retention import Pruned

app = typer.Typer()

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@app.command()
def prune(
    *,
    older_than: Annotated[
        str | None, typer.Option(metavar="PERIOD", help="Runs that were merged longer ago: 36h, 90d, 12w.")
    ] = None,
    before: Annotated[datetime | None, typer.Option(help="Runs that were merged before this time (UTC).")] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Runs that wrote into this dataset, such as a dropped one.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it goes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for scripts.")] = False,
) -> None:
    """Remove old runs from the lake graph; answers that lack them say so.

    Without an option, runs older than the setting retention.days go. With an age and a dataset, runs go that have both.
    """
    from provenance_store.graph.queries import LakeGraph

    settings = load_settings()
    now = datetime.now(UTC)
    limit = _limit(now, older_than, before)
    if limit is None and dataset is None:
        if settings.retention.days is None:
            raise InputError(
                "Say what to prune: --older-than 90d, --before DATE or --dataset NAME; or set retention.days, and "
                "`headwater prune` removes what is older."
            )
        limit = now - timedelta(days=settings.retention.days)
    with LakeGraph(settings) as graph:
        # Nothing goes that is merged after it was shown.
        limit = min(limit or now, now)
        plan = graph.prune(before=limit, dataset=dataset, dry_run=True)
        if not as_json:
            make_console().print(_table(plan))
        if not dry_run:
            if plan.runs and not yes:
                typer.confirm("Prune these runs?", abort=True, err=True)
            with show_bar("pruning", counts=False) as tell:
                plan = graph.prune(before=limit, dataset=dataset, progress=tell)
    if as_json:
        print(msgspec.json.encode(plan).decode())
    elif not dry_run:
        _tell(plan)


def _limit(now: datetime, older_than: str | None, before: datetime | None) -> datetime | None:
    if older_than is None:
        return before and before.replace(tzinfo=UTC)
    if before is not None:
        raise InputError("Give one of --older-than and --before: both say how old a run must be.")
    parts = re.fullmatch(r"([0-9]{1,5})([hdw])", older_than)
    if parts is None:
        raise InputError(f"{older_than!r} is not a period: write a number of hours, days or weeks, as 36h, 90d or 12w.")
    return now - timedelta(**{_UNITS[parts[2]]: int(parts[1])})


def _table(plan: "Pruned") -> Table:
    table = Table("run", "DIC", "merged (UTC)", "dataset", "into", "derivations", box=None, header_style="bold")
    table.columns[-1].justify = "right"
    for run in plan.runs:
        merged = f"{run.merged_at.astimezone(UTC):%Y-%m-%d %H:%M}"
        outside = run.edges - sum(feed.edges for feed in run.feeds)
        rows = [(feed.source, feed.target, feed.edges) for feed in run.feeds]
        for source, target, edges in [*rows, ("(outside the lake)", "", outside)] if outside else rows:
            table.add_row(Text(run.run), Text(run.dic), merged, Text(source), Text(target), f"{edges:,}")
        if not run.edges:
            table.add_row(Text(run.run), Text(run.dic), merged, "", "", "0")
    table.caption = f"{len(plan.runs):,} runs with {sum(run.edges for run in plan.runs):,} derivations"
    table.caption_justify = "left"
    return table


def _tell(pruned: "Pruned") -> None:
    print(f"{len(pruned.runs):,} runs pruned: {pruned.edges:,} derivations and {pruned.records:,} records removed.")
    if pruned.left:
        names = ", ".join(run.run for run in pruned.left)
        print(f"Left as they are, because they were merged anew meanwhile: {names}.")
