"""Consoles that fit where they print: a terminal's own width, and lines that are not broken where a program reads."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from provenance_store.services.service import Say

_WIDE = 400


def make_console(*, stderr: bool = False) -> Console:
    """A console on standard output, or on standard error."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDE)


@contextmanager
def show_progress(at_first: str = "") -> Iterator[Say]:
    """Progress on standard error: a line that changes in place for people, lines for logs."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    with console.status(at_first) as status:
        yield status.update


@contextmanager
def show_bar(what: str, *, counts: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that is told how much of how much is done; it shows the counts, or the share."""
    share = MofNCompleteColumn() if counts else TaskProgressColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def print_json(data: object) -> None:
    """JSON on standard output, for scripts and readable."""
    Console(highlight=False, soft_wrap=True).print_json(data=data)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of numbers under their names; the first column says of what they are."""
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for cells in rows:
        table.add_row(*cells)
    make_console().print(table)
