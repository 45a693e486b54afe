"""`headwater bench NAME`: measures a part beside its baseline in the same run, and prints a table with the ratio."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from provenance_store.cli.console import make_console
from provenance_store.errors import InputError, JobError
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


@benches.command()
def capture(
    rows: Annotated[int, typer.Option(help="How many rows the DataFrame jobs read.", min=1000)] = 2_000_000,
    tweets: Annotated[int, typer.Option(help="How many tweets the RDD and Hadoop jobs read.", min=1000)] = 1_000_000,
    repeat: Annotated[int, typer.Option(help="How often to measure; the spread is shown.", min=1)] = 3,
    case: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """The same job with and without provenance, side by side: RDDs, DataFrames, Hadoop."""
    from provenance_store.bench.capture import CASES, COLUMNS, measure_capture

    chosen = case or list(CASES)
    if unknown := [name for name in chosen if name not in CASES]:
        raise InputError(f"There is no case {unknown[0]!r}. There are: {', '.join(CASES)}.")
    console = make_console(stderr=True)
    with console.status("Starting …") as status:
        say = status.update if console.is_terminal else console.print
        measured = list(measure_capture(rows=rows, tweets=tweets, repeat=repeat, cases=chosen, say=say))
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=[row.to_dict() for row in measured])
    else:
        title = f"Capture, {rows:,} rows or {tweets:,} tweets, {repeat} times in turns: median (least to most)"
        table = Table(*COLUMNS[:1], title=title)
        for column in COLUMNS[1:]:
            table.add_column(column, justify="right")
        for row in measured:
            table.add_row(*row.cells())
        make_console().print(table)
    failed = {row.case: row.error for row in measured if row.error}
    for name, error in failed.items():
        console.print(f"{name}: {error}", markup=False)
    if failed:
        raise typer.Exit(1)


@benches.command()
def reduce(
    tweets: Annotated[
        list[int] | None, typer.Option(help="Of how many tweets the stream is; may be repeated.", min=1000)
    ] = None,
    repeat: Annotated[int, typer.Option(help="How often to measure; the spread is shown.", min=1)] = 3,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Reduction of the hashtag-count stream on one core, beside JSON objects and joins over strings."""
    from provenance_store.bench.reduce import COLUMNS, SIZES, measure_reduce

    console = make_console(stderr=True)
    with console.status("Starting …") as status:
        say = status.update if console.is_terminal else console.print
        measured = measure_reduce(sizes=tweets or SIZES, repeat=repeat, say=say)
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=measured.to_dicts())
    else:
        table = Table(title=f"Reduction of the hashtag-count stream, {repeat} times: median (least to most)")
        for column in COLUMNS:
            table.add_column(column, justify="left" if not column else "right")
        for cells in measured.cells():
            table.add_row(*cells)
        make_console().print(table)
    if wrong := [row for row in measured.rows if row.exact is False]:
        raise JobError(f"{wrong[0].way} of {wrong[0].tweets:,} tweets did not give the true dependencies.")


@benches.command()
def pipeline(
    tweets: Annotated[
        list[int] | None, typer.Option(help="Of how many tweets the stream is; may be repeated.", min=1000)
    ] = None,
    repeat: Annotated[int, typer.Option(help="How often to measure.", min=1)] = 3,
    once: Annotated[bool, typer.Option("--once", help="Only on two cores, and after the job.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """From a topic to graph.parquet: sizes beside each other, one core beside two, after the job and beside it."""
    from provenance_store.bench.pipeline import COLUMNS, measure_pipeline

    console = make_console(stderr=True)
    with console.status("Starting …") as status:
        say = status.update if console.is_terminal else console.print
        measured = list(measure_pipeline(sizes=tweets or [200_000, 1_000_000], repeat=repeat, once=once, say=say))
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=[row.to_dict() for row in measured])
    else:
        table = Table(title="Kafka to graph.parquet")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        for row in measured:
            table.add_row(*row.cells())
        make_console().print(table)
    if wrong := [row for row in measured if not row.exact]:
        raise JobError(f"The stream of {wrong[0].tweets:,} tweets did not give the true dependencies.")


@benches.command()
def graph(
    tweets: Annotated[int, typer.Option(help="How many tweets; there are three edges a tweet.", min=100)] = 1_000_000,
    questions: Annotated[int, typer.Option(help="How many records to ask of in each direction.", min=1)] = 500,
    baseline_outputs: Annotated[
        int, typer.Option(help="How many outputs to merge by a transaction each, to compare.", min=1)
    ] = 1_000,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """The lake graph on a Neo4j of its own: merging beside one transaction an output, questions, a large answer."""
    from provenance_store.bench.graph import measure_graph

    console = make_console(stderr=True)
    with console.status("Starting …") as status:
        say = status.update if console.is_terminal else console.print
        measured = measure_graph(tweets=tweets, questions=questions, baseline_outputs=baseline_outputs, say=say)
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=measured.to_dict())
    else:
        for title, columns, rows in measured.tables():
            table = Table(title=title)
            for column in columns:
                table.add_column(column, justify="right" if column else "left")
            for cells in rows:
                table.add_row(*cells)
            make_console().print(table)
    if measured.wrong:
        raise JobError(f"{measured.wrong:,} answers differ from what the data says.")


@benches.command()
def paper(
    *,
    accuracy_tweets: Annotated[
        int, typer.Option(help="Of how many tweets the stream of Figure 14 is.", min=1)
    ] = 20_000,
    local_tweets: Annotated[int, typer.Option(help="The same for Figure 16.", min=1)] = 100_000,
    table_tweets: Annotated[int, typer.Option(help="The same for Table I.", min=1)] = 200_000,
    speedup_tweets: Annotated[int, typer.Option(help="The same for Figure 15.", min=1)] = 50_000,
    percent: Annotated[
        list[float] | None, typer.Option(help="How many percent are out of order; may be repeated.", min=0, max=100)
    ] = None,
    batch: Annotated[list[int] | None, typer.Option(help="A local batch size; may be repeated.", min=1)] = None,
    processes: Annotated[int, typer.Option(help="The most local reducers at once.", min=1)] = 2,
    repeat: Annotated[int, typer.Option(help="How often to measure times; the spread is shown.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed puts the same elements out of order.")] = 1,
    figures: Annotated[Path, typer.Option(help="The folder to draw into.")] = Path("docs/figures"),
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """The evaluation of the parallel-prov-stream paper again: its three figures and its table, with plots."""
    from provenance_store.bench.paper import Tweets, measure_paper
    from provenance_store.bench.paper_accuracy import PERCENTS
    from provenance_store.bench.paper_sizes import BATCHES

    console = make_console(stderr=True)
    with console.status("Starting …") as status:
        measured = measure_paper(
            Tweets(accuracy_tweets, local_tweets, table_tweets, speedup_tweets),
            percents=percent or PERCENTS,
            batches=batch or BATCHES,
            processes=processes,
            repeat=repeat,
            seed=seed,
            figures=figures,
            say=status.update if console.is_terminal else console.print,
        )
    if json_output:
        Console(highlight=False, soft_wrap=True).print_json(data=measured.to_dict())
    else:
        for title, columns, rows in measured.tables():
            table = Table(title=title)
            for number, column in enumerate(columns):
                table.add_column(column, justify="right" if number else "left")
            for cells in rows:
                table.add_row(*cells)
            make_console().print(table)
    if wrong := measured.wrong():
        raise JobError(f"This must not be: {wrong[0]}.")
