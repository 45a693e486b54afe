"""`headwater bench NAME`: measures a part beside its baseline in the same run, and prints a table with the ratio."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from provenance_store.cli.console import make_console
from provenance_store.settings import load_settings

app = typer.Typer()
benches = typer.Typer(help="Measure a part beside its baseline.", no_args_is_help=True)
app.add_typer(benches, name="bench")


@benches.command()
def transport(
    executions: Annotated[
        int, typer.Option(help="How many function executions to send each time.", min=1000)
    ] = 300_000,
    repeat: Annotated[int, typer.Option(help="How often to measure; the spread is shown.", min=1)] = 3,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Kafka producer and consumer on one core: many executions a message, beside one edge a message."""
    from provenance_store.bench.transport import measure_transport

    console = Console(stderr=True)
    with console.status("Sending and reading …"):
        rows = measure_transport(load_settings(), executions, repeat)
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=[row.to_dict() for row in rows])
        return
    table = Table(title=f"Transport, {executions:,} executions of three edges, {repeat} times: median (least to most)")
    for column in ("", "messages", "edges/s", "MB/s of PROV-JSON", "MB/s per core used"):
        table.add_column(column, justify="left" if not column else "right")
    for row in rows:
        table.add_row(row.name, f"{row.messages:,}", row.edges_per_second, row.megabytes_per_second, row.per_core)
    make_console().print(table)
