"""`headwater reduce`: a recording in this process, a topic by the Spark application in one of its own."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from provenance_store.cli.console import make_console, show_progress
from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.reduction import output
from provenance_store.reduction.exact import reduce_messages
from provenance_store.services.application import listen
from provenance_store.services.service import Say
from provenance_store.transport.recording import RecordingSource

app = typer.Typer()

_COLOURS = {"complete": "green", "unknown": "yellow", "partial": "red"}


@app.command()
def reduce(
    source: Annotated[str, typer.Argument(help="A recording (file or folder), or else a topic.")],
    out: Annotated[Path, typer.Option(help="Where the graph and its account are written.")],
    run: Annotated[str | None, typer.Option(help="Only this run of the source.")] = None,
    *,
    wait: Annotated[float, typer.Option(help="Of a topic: seconds to wait for what a manifest counts.", min=0)] = 0.0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on for ever: topics parted by commas, or with *; each run a folder.")
    ] = False,
    quiet: Annotated[
        float,
        typer.Option(help="With --follow: after how many silent seconds a run is taken as it is.", min=0),
    ] = 300.0,
    watermark: Annotated[
        str | None,
        typer.Option(
            help="With --follow, of one topic whose runs do not end: how long after it was last told of an item can "
            "still be used, as 90s, 10m or 2h. Dependencies come out, and their state goes, as that time passes."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the account, or a list of several.")] = False,
) -> None:
    """Reduce a stream of full provenance to which output record was derived from which input record."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file: name a folder.")
    if follow and (run is not None or wait):
        raise InputError("--run and --wait are for a reduction that ends: leave them out with --follow.")
    period = None if watermark is None else _read_period(watermark, source, follow=follow)
    with show_progress("reducing") as say:
        if follow:
            for folder, account in follow_topics(source, out, say, quiet=quiet, period=period):
                _show({folder: account}, as_json=as_json)
            return
        if Path(source).exists():
            accounts = _reduce_recording(Path(source), out, run, say)
        else:
            accounts = reduce_topic(source, out, run, say, wait=wait)
    _show(accounts, as_json=as_json)


def _reduce_recording(path: Path, out: Path, run: str | None, say: Say) -> dict[Path, Account]:
    say(f"reducing the recording {path}")
    reduced = reduce_messages(RecordingSource(path))
    return output.write(out, output.choose_runs(reduced, str(path), run))


def reduce_topic(topic: str, out: Path, run: str | None, say: Say, *, wait: float = 0.0) -> dict[Path, Account]:
    """Reduce a topic with the Spark application; the accounts by the folders they were written to."""
    command = [*_application(topic, out), f"--wait={wait}", *([f"--run={run}"] if run is not None else [])]
    finished = [Path(told["finished"]) for told in listen(command, f"The reducer of topic {topic}", say)]
    return {folder: Account.read(folder) for folder in finished}


def follow_topics(
    topics: str, out: Path, say: Say, *, quiet: float, period: float | None = None
) -> Iterator[tuple[Path, Account]]:
    """Every run that ends in the topics, as long as the reducer lives; with a period every run whose graph grows."""
    ends = f"--quiet={quiet}" if period is None else f"--watermark={period}"
    command = [*_application(topics, out), "--follow", ends]
    for told in listen(command, f"The reducer of {topics}", say):
        folder = Path(told["finished"])
        yield folder, Account.read(folder)


def _read_period(text: str, topic: str, *, follow: bool) -> float:
    """The seconds of a period such as 10m."""
    if not follow:
        raise InputError("--watermark is for streams that do not end: give --follow too, or leave it out.")
    if "*" in topic or "," in topic:
        raise InputError(f"--watermark follows one topic, and {topic!r} may be several: start a reducer for each.")
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None or float(found[1]) == 0:
        raise InputError(f"--watermark {text!r} is no period: give a number of seconds, minutes or hours, as in 10m.")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def _application(topics: str, out: Path) -> list[str]:
    return [sys.executable, "-m", "spark_apps.reducer", f"--topic={topics}", f"--out={out}"]


def _show(accounts: dict[Path, Account], *, as_json: bool) -> None:
    if as_json:
        told = list(accounts.values())
        encoded = msgspec.json.encode(told[0] if len(told) == 1 else told)
        sys.stdout.write(msgspec.json.format(encoded).decode() + "\n")
        return
    table = Table("run", "verdict")
    for name in ("messages", "edges in", "edges out", "duplicates", "discarded", "rejected", "missing", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("folder", overflow="fold")
    for folder, account in accounts.items():
        counts = (
            account.messages,
            account.edges_in,
            account.edges_out,
            account.duplicates,
            account.discarded,
            account.rejected,
            sum(map(len, account.missing.values())),
        )
        verdict = f"[{_COLOURS[account.verdict]}]{account.verdict}[/]"
        table.add_row(account.run, verdict, *(f"{n:,}" for n in counts), f"{account.seconds:.1f}", str(folder))
    make_console().print(table)
