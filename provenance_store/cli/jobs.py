"""`headwater generate` and `headwater run`: data to work on, and instrumented DICs outside Airflow."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from provenance_store.lake import layout
from provenance_store.model.dics import find_dic
from provenance_store.settings import find_lake

app = typer.Typer()
generate_app = typer.Typer(help="Make synthetic data.", no_args_is_help=True)
app.add_typer(generate_app, name="generate")


@generate_app.callback()
def generate() -> None:
    """Make synthetic data."""


Count = Annotated[int, typer.Option(min=0, help="How many.")]
Seed = Annotated[int, typer.Option(help="The same seed makes the same data.")]
Out = Annotated[str | None, typer.Option(help="The lake's root; the setting `lake` where not given.")]
Version = Annotated[str | None, typer.Option(help="Name of the version; n<count>-s<seed> where not given.")]
Files = Annotated[int | None, typer.Option(min=1, help="How many files; at least 2 where not given.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


@generate_app.command("tweets")
def generate_tweets(
    *, count: Count, seed: Seed, out: Out = None, version: Version = None, files: Files = None, as_json: AsJson = False
) -> None:
    """Make a synthetic Twitter lake: datasets `tweets` and `categories`."""
    from provenance_store.lake import tweets

    _generate(tweets.generate, tweets.DATASET, count, as_json, seed=seed, out=out, version=version, files=files)


@generate_app.command("orders")
def generate_orders(
    *, count: Count, seed: Seed, out: Out = None, version: Version = None, files: Files = None, as_json: AsJson = False
) -> None:
    """Make a synthetic shop: datasets `orders` and `customers`."""
    from provenance_store.lake import orders

    _generate(orders.generate, orders.ORDERS, count, as_json, seed=seed, out=out, version=version, files=files)


def _generate(
    make: Callable[..., layout.Version], what: str, count: int, as_json: bool, *, out: str | None, **options: Any
) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=count)
        made = make(find_lake(out), count=count, progress=lambda done: bar.advance(task, done), **options)
    if as_json:
        typer.echo(json.dumps({"version": made.reference, "path": str(made.path), "files": len(made.files())}))
    else:
        typer.echo(f"{made.reference}: {count:,} {what} in {len(made.files())} files in {made.path}")


@app.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
def run(
    context: typer.Context,
    dic: Annotated[str, typer.Argument(help="The DIC, as entry points in group headwater.dics name it.")],
) -> None:
    """Run one instrumented DIC; all that follows its name is the DIC's own: try `headwater run DIC --help`."""
    module = find_dic(dic).value
    arguments = list(context.args)
    if not any(argument in {"--help", "-h"} or argument.split("=")[0] == "--run" for argument in arguments):
        arguments += ["--run", make_run_id(dic)]
    _hand_over(module, arguments)


@app.command(
    "declare", context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, add_help_option=False
)
def declare(context: typer.Context) -> None:
    """Declare a job that is not instrumented: which versions it read and wrote; answers across it say unknown."""
    _hand_over("spark_apps.capture.declare", list(context.args))


def _hand_over(module: str, arguments: list[str]) -> NoReturn:
    done = subprocess.run([sys.executable, "-m", module, *arguments], check=False)
    # A negative code is the signal that ended the job; shells say 128 and the signal.
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def make_run_id(dic: str) -> str:
    """A run id that says what and when, and that two runs begun in one second do not share."""
    return f"{dic}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
