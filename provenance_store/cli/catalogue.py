"""`headwater catalogue`: what is known of the datasets of the lake, and whether the lake is so."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from provenance_store.cli.console import make_console, print_json
from provenance_store.errors import InputError
from provenance_store.settings import find_lake

if TYPE_CHECKING:
    from provenance_store.lake.catalogue import Dataset, Listed

app = typer.Typer()


class _Action(StrEnum):
    LIST = "list"
    CHECK = "check"


@app.command()
def catalogue(
    action: Annotated[_Action, typer.Argument(help="Show what is told, or check the files against it.")] = _Action.LIST,
    lake: Annotated[str | None, typer.Option(help="The lake's root; the setting `lake` where not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for scripts.")] = False,
) -> None:
    """The datasets of the lake: format, policy, personal columns, versions; `check` holds the files to it."""
    root = find_lake(lake)
    if action is _Action.CHECK:
        _check(root, as_json=as_json)
        return
    from provenance_store.lake.catalogue import list_all

    listed = list_all(root)
    if as_json:
        print_json(msgspec.to_builtins(listed))
    else:
        make_console().print(_as_table(listed))


def _check(root: Path, *, as_json: bool) -> None:
    from provenance_store.lake.checking import find_faults  # pyarrow takes a moment to import

    faults = list(find_faults(root))
    if as_json:
        print_json({"faults": faults})
    if faults:
        raise InputError("The lake is not as its catalogue tells:\n  " + "\n  ".join(faults))
    if not as_json:
        print("The lake is as its catalogue tells.")


def _as_table(listed: "list[Listed]") -> Table:
    table = Table("dataset", "format", "policy", "key", "personal", "versions", box=None, header_style="bold")
    for one in listed:
        told = one.told
        cells = ("", "undeclared", "", "") if told is None else _cells(told)
        versions = f"{len(one.versions):,}, newest {one.versions[-1]}" if one.versions else "none"
        table.add_row(
            Text(one.dataset), *(Text(cell, "yellow" if told is None else "") for cell in cells), Text(versions)
        )
    return table


def _cells(told: "Dataset") -> tuple[str, ...]:
    from provenance_store.lake.catalogue import Hold, Redact

    policy = str(type(told.policy).__struct_config__.tag)
    if isinstance(told.policy, Redact):
        policy += f" {', '.join(told.policy.fields)}"
    elif isinstance(told.policy, Hold):
        policy += f" by {told.policy.who}: {told.policy.why}"
    return told.format, policy, ", ".join(told.key), ", ".join(told.personal)
