"""`headwater demo`: the whole way of the data once, on real services, with both questions asked at the end."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from provenance_store.cli.console import make_console
from provenance_store.errors import JobError
from provenance_store.lake import records
from provenance_store.lake.layout import Version, resolve
from provenance_store.services import lifecycle, registry
from provenance_store.services.airflow import Airflow
from provenance_store.services.airflow_client import AirflowClient
from provenance_store.settings import Settings, load_settings

app = typer.Typer()

# A hashtag with about this many tweets makes a tree that fits a screen.
_READABLE = 5


@app.command()
def demo(
    count: Annotated[int, typer.Option(min=1, help="How many tweets.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed makes the same tweets.")] = 1,
) -> None:
    """From a tweet to an answer: Airflow runs a job on Hadoop and one on Spark, and both questions are asked."""
    settings = load_settings()
    console = make_console()
    step = _Steps(console)
    with step("Starting Kafka, Neo4j and Airflow") as say:
        for service in registry.services(settings, (*registry.DEFAULT, Airflow.name)):
            if not service.configured_elsewhere:
                lifecycle.up(service, say)
    client = AirflowClient(Airflow(settings), "engineer")
    with step(f"Airflow: {count:,} tweets, counted on Hadoop, reduced beside it, checked and merged") as say:
        run = client.trigger("twitter_hashtags", {"count": count, "seed": seed})
        client.wait("twitter_hashtags", run, say)
        (counts,) = client.returned("twitter_hashtags", run, "count")["outputs"]
    with step("Airflow: the new counts have started the next DAG, category totals on Spark") as say:
        client.wait_for_next("twitter_categories", counts, say)
    _ask(settings, console, resolve(settings.lake, counts))
    _tell_login(Airflow(settings), console)


def _tell_login(airflow: Airflow, console: Console) -> None:
    password = airflow.passwords()["admin"]
    console.print(f"\n[bold]Airflow[/] goes on at [bold]{airflow.url}[/]: log in as admin with {password}", markup=True)
    console.print(
        f"The other users are in {airflow.passwords_file}. `headwater down` stops all services. Next: docs/airflow.md",
        soft_wrap=True,
    )


def _ask(settings: Settings, console: Console, counts: Version) -> None:
    from provenance_store.graph.queries import LakeGraph  # neo4j takes a moment to import
    from provenance_store.graph.render import as_tree

    record, line = _choose_count(counts)
    with LakeGraph(settings) as graph:
        back = graph.backward([record])
        # Of the tweets behind it, the one that went into most.
        tweet = max((one.id for one in back.records), key=lambda one: len(graph.forward([one]).records))
        forth = graph.forward([tweet])
    hashtag, _, number = line.decode().partition("\t")
    console.print(f"\n[bold]Where did the count of #{hashtag}, {number}, come from?[/]")
    console.print(Text(f"$ headwater backward '{record}'", "dim"))
    console.print(as_tree(back))
    for one in back.records:
        console.print(Text(f"  {_text_of(settings, one.id)}", "italic"), soft_wrap=True)
    console.print(f"\n[bold]What was made from this tweet?[/]  {_text_of(settings, tweet)}", soft_wrap=True)
    console.print(Text(f"$ headwater forward '{tweet}'", "dim"))
    console.print(as_tree(forth))
    for one in forth.records:
        console.print(Text(f"  {_line_of(settings, one.id)}", "italic"), soft_wrap=True)


def _choose_count(counts: Version) -> tuple[str, bytes]:
    """A hashtag that several tweets have, and not too many to read."""
    lines = list(records.lines_of(counts))
    if not lines:
        raise JobError("No tweet had a hashtag: generate more tweets, for instance with --count 500.")
    return min(lines, key=lambda one: (abs(int(one[1].rpartition(b"\t")[2]) - _READABLE), one[0]))


def _text_of(settings: Settings, tweet: str) -> str:
    return str(json.loads(_line_of(settings, tweet))["text"])


def _line_of(settings: Settings, record: str) -> str:
    return records.read_line(settings.lake, record).decode()


class _Steps:
    """Says what is being done, and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def __call__(self, title: str) -> Iterator[Callable[[str], None]]:
        """One step; a spinner where there is a terminal."""
        started = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(f"{title} …") as status:
                yield lambda text: status.update(f"{title} …  [dim]{text}[/]")
        else:
            self._console.print(f"▸ {title} …")
            yield lambda _: None
        self._console.print(f"[green]✓[/] {title}  [dim]{time.monotonic() - started:.1f} s[/]")
