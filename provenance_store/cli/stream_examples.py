"""`headwater streams examples` and `example`: the papers' queries, and source events to run them on."""

from pathlib import Path
from typing import Annotated

import typer

from provenance_store.cli.console import print_json, print_table

app = typer.Typer()

Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]


@app.command()
def examples(as_json: Json = False) -> None:
    """List the queries of papers that are here to be run."""
    from provenance_store.streams.examples import EXAMPLES

    told = [{"name": one.name, "finds": one.finds, "by": list(one.by), "paper": one.paper} for one in EXAMPLES.values()]
    if as_json:
        print_json(told)
        return
    rows = [(one.name, one.finds, ", ".join(one.by), one.paper) for one in EXAMPLES.values()]
    print_table("Stream queries of papers", ("name", "finds", "within one", "paper"), rows)


@app.command()
def example(
    name: Annotated[str, typer.Argument(help="One of `headwater streams examples`.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for query.json and the source events: a lake, or a new one.")],
    count: Annotated[int, typer.Option(min=0, help="How many source events.")],
    seed: Annotated[int, typer.Option(help="The same seed makes the same events.")],
    keys: Annotated[
        int | None, typer.Option(min=1, help="About how many cars, meters, items and the like they are of.")
    ] = None,
    files: Annotated[int, typer.Option(min=1, help="In how many files, which come one after the other.")] = 1,
) -> None:
    """Write a query and generated source events for it, as they may come: out of order within its lateness."""
    from provenance_store.streams.examples import find_example
    from provenance_store.streams.examples.writing import write_example

    written = write_example(find_example(name), out, count=count, seed=seed, keys=keys, files=files)
    typer.echo(f"{written.query}\n{written.events if files == 1 else written.events.parent}: {count:,} events")
