"""The root command: gathers the groups, and turns errors of ours into a sentence and an exit code.

Exit codes: 0 done, 1 an error of ours, 2 wrong usage (typer's own), 130 interrupted, 141 nobody reads our output.
"""

import os
import sys

import typer
from rich.console import Console

from provenance_store.cli import (
    audit,
    backup,
    bench,
    catalogue,
    demo,
    export,
    graph,
    jobs,
    key,
    prune,
    purge,
    reduce,
    services,
    stream,
    streams,
    trace,
)
from provenance_store.errors import HeadwaterError

app = typer.Typer(
    name="headwater",
    help="Record-level provenance for a data lake: where a record came from, and what was made from it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS = (
    demo, services, jobs, catalogue, stream, streams, reduce, graph, trace, audit, prune, purge, backup, key, export,
    bench,
)  # fmt: skip
for group in GROUPS:
    app.add_typer(group.app)


def main() -> None:
    """Run the command; a person's mistake is told in a sentence, never as a traceback."""
    try:
        app()
    except HeadwaterError as error:
        Console(stderr=True, highlight=False).print(f"[bold red]Error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # `headwater backward … | head`: the reader has gone, so nothing is owed, not even a flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _escape(text: str) -> str:
    # Record ids and messages may hold square brackets, which rich would take for its markup.
    return text.replace("[", r"\[")
