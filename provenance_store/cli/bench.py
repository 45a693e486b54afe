"""`headwater bench NAME`: measures a part beside its baseline in the same run, and prints a table with the ratio."""

from pathlib import Path
from typing import Annotated

import typer

from provenance_store.cli.console import make_console, print_json, print_table, show_progress
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

    with show_progress("Sending and reading …"):
        rows = measure_transport(load_settings(), executions, repeat)
    if json_output:
        print_json([row.to_dict() for row in rows])
        return
    print_table(
        f"Transport, {executions:,} executions of three edges, {repeat} times: median (least to most)",
        ("", "messages", "edges/s", "MB/s of PROV-JSON", "MB/s per core used"),
        [(row.name, f"{row.messages:,}", row.edges_per_second, row.megabytes_per_second, row.per_core) for row in rows],
    )


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
    with show_progress("Starting …") as say:
        measured = list(measure_capture(rows=rows, tweets=tweets, repeat=repeat, cases=chosen, say=say))
    if json_output:
        print_json([row.to_dict() for row in measured])
    else:
        title = f"Capture, {rows:,} rows or {tweets:,} tweets, {repeat} times in turns: median (least to most)"
        print_table(title, COLUMNS, [row.cells() for row in measured])
    failed = {row.case: row.error for row in measured if row.error}
    for name, error in failed.items():
        make_console(stderr=True).print(f"{name}: {error}", markup=False)
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

    with show_progress("Starting …") as say:
        measured = measure_reduce(sizes=tweets or SIZES, repeat=repeat, say=say)
    if json_output:
        print_json(measured.to_dicts())
    else:
        title = f"Reduction of the hashtag-count stream, {repeat} times: median (least to most)"
        print_table(title, COLUMNS, list(measured.cells()))
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

    with show_progress("Starting …") as say:
        measured = list(measure_pipeline(sizes=tweets or [200_000, 1_000_000], repeat=repeat, once=once, say=say))
    if json_output:
        print_json([row.to_dict() for row in measured])
    else:
        print_table("Kafka to graph.parquet", COLUMNS, [row.cells() for row in measured])
    if wrong := [row for row in measured if not row.exact]:
        raise JobError(f"The stream of {wrong[0].tweets:,} tweets did not give the true dependencies.")


@benches.command()
def graph(
    tweets: Annotated[int, typer.Option(help="How many tweets; there are three edges a tweet.", min=100)] = 1_000_000,
    questions: Annotated[int, typer.Option(help="How many records to ask of in each direction.", min=1)] = 500,
    baseline_outputs: Annotated[
        int, typer.Option(help="How many outputs to merge by a transaction each, to compare.", min=1)
    ] = 1_000,
    starts: Annotated[int, typer.Option(help="How many records to trace at once on Spark.", min=1)] = 10_000,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """The lake graph on a Neo4j of its own: merging beside one transaction an output, questions, many starts."""
    from provenance_store.bench.graph import measure_graph

    with show_progress("Starting …") as say:
        measured = measure_graph(
            tweets=tweets, questions=questions, baseline_outputs=baseline_outputs, starts=starts, say=say
        )
    if json_output:
        print_json(measured.to_dict())
    else:
        for title, columns, rows in measured.tables():
            print_table(title, columns, rows)
    if measured.wrong:
        raise JobError(f"{measured.wrong:,} answers differ from what the data says.")


@benches.command()
def purge(
    tweets: Annotated[int, typer.Option(help="How many tweets; those of one handle are purged.", min=100)] = 1_000_000,
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """One handle purged with all that was made from its tweets, beside running the pipeline again without it."""
    from provenance_store.bench.purge import COLUMNS, less_work, measure_purge

    with show_progress("Starting …") as say:
        measured = measure_purge(tweets=tweets, say=say)
    if json_output:
        print_json([row.to_dict() for row in measured])
    else:
        print_table("One handle purged", COLUMNS, [row.cells() for row in measured])
        typer.echo(less_work(measured))


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

    with show_progress("Starting …") as say:
        measured = measure_paper(
            Tweets(accuracy_tweets, local_tweets, table_tweets, speedup_tweets),
            percents=percent or PERCENTS,
            batches=batch or BATCHES,
            processes=processes,
            repeat=repeat,
            seed=seed,
            figures=figures,
            say=say,
        )
    if json_output:
        print_json(measured.to_dict())
    else:
        for title, columns, rows in measured.tables():
            print_table(title, columns, rows)
    if wrong := measured.wrong():
        raise JobError(f"This must not be: {wrong[0]}.")


@benches.command()
def streams(
    *,
    events: Annotated[int, typer.Option(help="Of how many events storage is measured.", min=1000)] = 100_000,
    flow: Annotated[int, typer.Option(help="How many events flow where throughput is measured.", min=1000)] = 20_000,
    repeat: Annotated[int, typer.Option(help="How often to measure times; the spread is shown.", min=1)] = 3,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Measure on Structured Streaming, too.")] = True,
    figures: Annotated[Path, typer.Option(help="The folder to draw into.")] = Path("docs/figures"),
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Provenance of streams in bytes and in time: by needed keys, all keys, contents, and an edge a dependency."""
    from provenance_store.bench.paper_figures import prepare
    from provenance_store.bench.streams import measure_streams

    prepare(figures)
    with show_progress("Starting …") as say:
        measured = measure_streams(events=events, flow=flow, repeat=repeat, spark=spark, figures=figures, say=say)
    if json_output:
        print_json(measured.to_dict())
        return
    for title, columns, rows in measured.tables():
        print_table(title, columns, rows)


@benches.command()
def live(
    *,
    events: Annotated[int, typer.Option(help="How many events flow through each query.", min=1000)] = 20_000,
    edges: Annotated[int, typer.Option(help="Over how many edges rates are measured.", min=1000)] = 200_000,
    seconds: Annotated[float, typer.Option(help="How long a database is asked on demand.", min=0.5)] = 5.0,
    repeat: Annotated[int, typer.Option(help="How often to measure times; the spread is shown.", min=1)] = 3,
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Measure on Structured Streaming, too.")] = True,
    figures: Annotated[Path, typer.Option(help="The folder to draw into.")] = Path("docs/figures"),
    json_output: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Provenance of running queries: none, by keys, backward, live forward; and the synthetic experiments of Ananke."""
    import msgspec

    from provenance_store.bench import live_queries
    from provenance_store.bench.live_synthetic import measure_live_synthetic
    from provenance_store.bench.paper_figures import prepare

    prepare(figures)
    with show_progress("Starting …") as say:
        costs = list(live_queries.measure_costs(live_queries.QUERIES, events, repeat, say))
        if spark:
            costs += live_queries.measure_spark(live_queries.ON_SPARK, events, repeat, say)
        live_queries.draw_costs(costs, figures)
        spaces = list(live_queries.measure_spaces(live_queries.QUERIES, 5 * events, say))
        measured = measure_live_synthetic(
            edges=edges, seconds=seconds, repeat=repeat, spark=spark, figures=figures, say=say
        )
    if json_output:
        print_json({"costs": msgspec.to_builtins(costs), "spaces": msgspec.to_builtins(spaces), **measured.to_dict()})
        return
    title = f"The papers' queries, {events:,} events: median (least to most)"
    print_table(title, live_queries.COLUMNS, [row.cells() for row in costs])
    print_table("Space, in percent of what came", live_queries.SPACE_COLUMNS, [row.cells() for row in spaces])
    for title, columns, rows in measured.tables():
        print_table(title, columns, rows)
