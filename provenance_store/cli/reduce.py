"""`headwater reduce`: a recording in this process, a topic by the Spark application in one of its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from provenance_store import errors
from provenance_store.cli.console import make_console
from provenance_store.errors import HeadwaterError, InputError, JobError
from provenance_store.model.account import Account
from provenance_store.reduction import output
from provenance_store.reduction.exact import reduce_messages
from provenance_store.services.service import Say
from provenance_store.transport.recording import RecordingSource

app = typer.Typer()

_COLOURS = {"complete": "green", "unknown": "yellow", "partial": "red"}
_LAST_LINES = 15


@app.command()
def reduce(
    source: Annotated[str, typer.Argument(help="A recording (file or folder), or else a topic.")],
    out: Annotated[Path, typer.Option(help="Where the graph and its account are written.")],
    run: Annotated[str | None, typer.Option(help="Only this run of the source.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts: the account, or a list of several.")] = False,
) -> None:
    """Reduce a stream of full provenance to which output record was derived from which input record."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file: name a folder.")
    with _progress() as say:
        if Path(source).exists():
            accounts = _reduce_recording(Path(source), out, run, say)
        else:
            accounts = reduce_topic(source, out, run, say)
    _show(accounts, as_json=as_json)


def _reduce_recording(path: Path, out: Path, run: str | None, say: Say) -> dict[Path, Account]:
    say(f"reducing the recording {path}")
    reduced = reduce_messages(RecordingSource(path))
    return output.write(out, output.choose_runs(reduced, str(path), run))


def reduce_topic(topic: str, out: Path, run: str | None, say: Say) -> dict[Path, Account]:
    """Reduce a topic with the Spark application; the accounts by the folders they were written to."""
    command = [sys.executable, "-m", "spark_apps.reducer", f"--topic={topic}", f"--out={out}"]
    finished: list[Path] = []
    error: HeadwaterError | None = None
    # What Spark logs is worth showing only where it failed without saying why.
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command + ([f"--run={run}"] if run is not None else []),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            for line in process.stdout or ():
                told = _read_line(line)
                if "progress" in told:
                    say(told["progress"])
                elif "finished" in told:
                    finished.append(Path(told["finished"]))
                elif "error" in told:
                    error = _error(told)
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if error is not None:
            raise error
        if status != 0 or not finished:
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
            raise JobError(
                f"The reducer of topic {topic} ended with status {status} and without its result. It said last:\n"
                + "\n".join(f"  {line}" for line in lines)
            )
    return {folder: Account.read(folder) for folder in finished}


def _read_line(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError:  # a JVM may print what it likes
        return {}
    return told if isinstance(told, dict) else {}


def _error(told: dict[str, Any]) -> HeadwaterError:
    """The reducer's error as it was raised there."""
    kind = getattr(errors, str(told.get("kind")), JobError)
    chosen = kind if isinstance(kind, type) and issubclass(kind, HeadwaterError) else JobError
    return chosen(told["error"])


@contextmanager
def _progress() -> Iterator[Say]:
    """Lines on standard error, or one that changes in place on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    with console.status("reducing") as status:
        yield status.update


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
