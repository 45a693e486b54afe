"""`headwater audit`: who asked what of the lake graph, and whether the log is whole."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, print_json
from provenance_store.errors import AuditError
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.audit import Checked, Entry

app = typer.Typer()

_CELL = 120


@app.command()
def audit(
    since: Annotated[datetime | None, typer.Option(help="Only what was asked at this time (UTC) or later.")] = None,
    who: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this one asked.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no line was altered, put in or taken out.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for scripts, one line each.")] = False,
) -> None:
    """Show who asked what of the lake graph, when, and how it ended."""
    from provenance_store.graph.audit import Audit

    log = Audit(load_settings())
    if verify:
        _show_checked(log.check(), as_json=as_json)
        return
    entries = log.entries(since=since and since.replace(tzinfo=UTC), who=who)
    if as_json:
        for entry in entries:
            sys.stdout.write(msgspec.json.encode(entry).decode() + "\n")
    else:
        make_console().print(_as_table(entries))


def _show_checked(checked: "Checked", *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(checked))
    if checked.faults:
        raise AuditError("The audit log is not as it was written:\n  " + "\n  ".join(checked.faults))
    if not as_json:
        before = "" if checked.begins_after is None else f" It goes on from {checked.begins_after}, which is not here."
        print(f"{checked.entries:,} entries, none altered, put in or taken out; the last is {checked.last}.{before}")


def _as_table(entries: "Iterable[Entry]") -> Table:
    table = Table("when (UTC)", "who", "asked", "", "ended", "ms", box=None, header_style="bold")
    table.columns[-1].justify = "right"
    for entry in entries:
        who = entry.who if entry.who == entry.user else f"{entry.who} (as {entry.user})"
        table.add_row(
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            Text(who),
            entry.kind,
            _in_short(entry.asked),
            _in_short(entry.ended),
            f"{entry.seconds * 1000:,.1f}",
        )
    return table


def _in_short(facts: dict[str, object]) -> Text:
    shown = ", ".join(
        f"{name} {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in facts.items()
    )
    return Text(shown if len(shown) <= _CELL else f"{shown[:_CELL]}…", overflow="fold")
