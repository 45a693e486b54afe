"""`headwater demo`: the whole way of the data once, on real services, with both questions asked at the end."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from provenance_store.cli.console import make_console
from provenance_store.cli.jobs import find_dic, make_run_id
from provenance_store.cli.reduce import reduce_topic
from provenance_store.errors import JobError
from provenance_store.lake import records, tweets
from provenance_store.lake.layout import Version, resolve
from provenance_store.services import lifecycle, registry
from provenance_store.settings import Settings, load_settings

app = typer.Typer()

DIC = "hashtag-count"
# A hashtag with about this many tweets makes a tree that fits a screen.
_READABLE = 5


@app.command()
def demo(
    count: Annotated[int, typer.Option(min=1, help="How many tweets.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed makes the same tweets.")] = 1,
) -> None:
    """From a tweet to an answer: generate, count on Hadoop, reduce on Spark, merge into Neo4j, ask both ways."""
    settings = load_settings()
    console = make_console()
    step = _Steps(console)
    with step("Starting Kafka and Neo4j") as say:
        for service in registry.services(settings, registry.DEFAULT):
            if not service.configured_elsewhere:
                lifecycle.up(service, say)
    with step(f"Generating a Twitter lake of {count:,} tweets"):
        lake = tweets.generate(settings.lake, count=count, seed=seed)
    run = make_run_id(DIC)
    with step("Counting hashtags with a Hadoop Streaming job that streams its provenance to Kafka") as say:
        done = _run_dic(lake, run, say)
    reduced = settings.home / "reduced" / run
    with step("Reducing the provenance on Spark to which output came from which input") as say:
        (account,) = reduce_topic(done["topic"], reduced, run, say).values()
    with step("Merging the reduced graph into the lake graph in Neo4j"):
        _merge(settings, reduced)
    console.print(
        f"\nThe job used {account.edges_in:,} dependencies in {account.messages:,} messages "
        f"({account.bytes / 1000:,.0f} kB); {account.edges_out:,} between inputs and outputs are left, "
        f"provenance [bold]{account.verdict}[/]."
    )
    _ask(settings, console, resolve(settings.lake, done["outputs"][0]))


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
        console.print(Text(f"  #{_line_of(settings, one.id)}", "italic"), soft_wrap=True)
    console.print(
        "\nKafka and Neo4j go on running: `headwater status` shows them, `headwater down` stops them. "
        "Next: docs/queries.md"
    )


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


def _run_dic(lake: Version, run: str, say: Callable[[str], None]) -> dict[str, Any]:
    module = find_dic(DIC).value
    command = [sys.executable, "-m", module, "--run", run, "--input", lake.reference, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JobError(done.stderr.strip().removeprefix("Error: ") or f"{DIC} ended with status {done.returncode}.")
    say(done.stderr.strip())
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _merge(settings: Settings, folder: Path) -> None:
    from provenance_store.graph.queries import LakeGraph  # neo4j takes a moment to import

    with LakeGraph(settings) as graph:
        graph.merge(folder)


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
