"""`headwater streams`: stream queries from their descriptions; what follows from them, running, replaying."""

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from provenance_store.cli import live, stream_debug, stream_examples
from provenance_store.cli.console import make_console, print_json, print_table, show_progress
from provenance_store.errors import InputError
from provenance_store.settings import load_settings

app = typer.Typer()
streams = typer.Typer(
    help="Stream queries: run them, and see what follows from their description.", no_args_is_help=True
)
streams.add_typer(live.app)
app.add_typer(streams, name="streams")
streams.add_typer(stream_examples.app)
streams.add_typer(stream_debug.app)

Description = Annotated[Path, typer.Argument(metavar="QUERY", help="The description of the query, as JSON.")]
Expiry = Enum("Expiry", {"exact": "exact", "reach": "reach"}, type=str)
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]


@streams.command()
def describe(query: Description, as_json: Json = False) -> None:
    """Show each operator's properties, and whether the keys of its events have to be stored."""
    import msgspec

    from provenance_store.streams.assertions import streams_to_keep
    from provenance_store.streams.properties import properties_of
    from provenance_store.streams.query import StreamQuery

    read = StreamQuery.read(query)
    kept = streams_to_keep(read, "needed")
    told: list[dict[str, Any]] = [
        {
            "stream": one.name,
            "inputs": list(one.inputs),
            **msgspec.to_builtins(properties_of(one)),
            "stored": one.name in kept,
        }
        for one in read.ordered()
    ]
    if as_json:
        print_json(told)
        return
    columns = ("stream", "from", "mapping", "sources", "contributing", "inputs of one", "outputs of one", "keys")
    rows = [
        (
            one["stream"],
            ", ".join(one["inputs"]),
            one["mapping"],
            one["input_sources"],
            one["contributing_sources"],
            one["input_tuple_mapping"],
            one["output_tuple_mapping"],
            "stored" if one["stored"] else "follow",
        )
        for one in told
    ]
    print_table(f"Stream query {read.name}", columns, rows)


@streams.command()
def run(
    query: Description,
    *,
    run_id: Annotated[str, typer.Option("--run", help="The run's id, which names the versions that it makes.")],
    batch: Annotated[
        int | None, typer.Option(min=1, help="The most messages of a topic, and files, in a batch.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until stopped. Without it, the same run goes on, ends and lands.")
    ] = False,
    publish_every: Annotated[
        int | None,
        typer.Option(min=1, help="Publish results in segments of so many seconds of event time; 60 with --follow."),
    ] = None,
    live: Annotated[
        Expiry | None,
        typer.Option(help="Send live forward provenance to Kafka, and how to tell that a source has expired."),
    ] = None,
    capture: Annotated[bool, typer.Option("--capture", help="Record each event's parents too, to compare.")] = False,
    as_json: Json = False,
) -> None:
    """Run a stream query on Spark: what there is, into the lake; killed and begun again, it goes on.

    A run that follows publishes what the watermark has closed as versions RUN.NUMBER; the others when they end.
    """
    from provenance_store.services.application import listen
    from provenance_store.streams.query import StreamQuery, functions_of

    functions_of(StreamQuery.read(query))  # what is wrong with it is told before Spark is started
    command = [sys.executable, "-m", "spark_apps.streams", f"--query={query}", f"--run={run_id}"]
    command += [f"--batch={batch}"] * (batch is not None) + ["--follow"] * follow + ["--capture"] * capture
    if (seconds := publish_every or (60 if follow else None)) is not None:
        command.append(f"--period={1000 * seconds}")
    command += [f"--live={live.value}"] if live else []
    made: dict[str, Any] = {"versions": []}
    with show_progress("running") as say:
        for told in listen(command, f"The stream query {query}", say):
            if "version" in told:
                made["versions"].append(told["version"])
            if "assertions" in told:
                made["assertions"] = told["assertions"]
    if as_json:
        print_json(made)
        return
    for version in made["versions"]:
        typer.echo(f"made {version}")
    if "assertions" in made:
        typer.echo(f"assertions in {made['assertions']}: `headwater merge` that folder to ask about the results")


@streams.command()
def stop(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run; without one, what takes live provenance in is ended.")
    ] = None,
) -> None:
    """End what Airflow keeps going on beside it: the job of a run, which can be taken up again or finished."""
    import time

    from provenance_store.services import beside

    home = load_settings().home
    word = beside.stream_folder(home, run_id) if run_id else beside.following_folder(home)
    what = f"The job of run {run_id!r}" if run_id else "What follows live provenance"
    if not word.is_dir() or beside.outcome_of(word) is not None:
        raise InputError(f"{what} does not go on beside Airflow: `headwater streams jobs` lists all runs.")
    beside.ask_to_stop(word)
    with show_progress(f"{what} is ending"):
        while beside.outcome_of(word) is None:
            time.sleep(0.2)
    finish = f": `headwater streams run QUERY --run {run_id}` finishes its run" if run_id else ""
    typer.echo(f"{what} has ended where it was{finish}.")


@streams.command()
def replay(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Results of a stream query, as lake:… ids.")],
    as_json: Json = False,
) -> None:
    """Make results again from first inputs, with all on the way to them, and compare."""
    from provenance_store.streams.again import make_again

    again = make_again(load_settings().lake, ids)
    if as_json:
        print_json(again.to_dict())
    else:
        rows = [
            (str(index), stream, f"{len(events):,}", again.shorten(events)) for index, stream, events in again.table
        ]
        print_table("Replayed", ("", "stream", "events", "the last"), rows)
        for one in again.different:
            make_console(stderr=True).print(f"{one} is another than was recorded.", markup=False)
    if again.different:
        raise typer.Exit(1)


@streams.command()
def store(run_id: Annotated[str, typer.Argument(metavar="RUN", help="A finished run of a stream query.")]) -> None:
    """Store the keys of a run's events in Neo4j, for `headwater cypher`."""
    from provenance_store.graph.queries import LakeGraph

    with LakeGraph(load_settings()) as graph:
        typer.echo(f"{graph.store_assertions(run_id):,} keys of {run_id} are in Neo4j, as (:Assertion).")
