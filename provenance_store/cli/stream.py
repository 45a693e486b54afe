"""`headwater record`, `replay` and `shuffle`: a stream to a file, a file to a stream, and a file made worse."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from provenance_store.settings import load_settings
from provenance_store.transport.port import Sink, Source
from provenance_store.transport.recording import RecordingSink, RecordingSource
from provenance_store.transport.shuffle import Shares, ShuffledSource

app = typer.Typer()


@app.command()
def record(
    topic: Annotated[str, typer.Argument(help="The topic to record, from its beginning to its present end.")],
    out: Annotated[Path, typer.Option(help="The recording to write.")],
    run: Annotated[str | None, typer.Option(help="Only the messages of this run.")] = None,
) -> None:
    """Write a topic's messages to a recording, one a line."""
    from provenance_store.transport.kafka import KafkaTransport  # kafka takes a moment to import

    source = KafkaTransport(load_settings()).source(topic)
    _copy(source, RecordingSink(out), run, f"{topic} → {out}")


@app.command()
def replay(
    recording: Annotated[Path, typer.Argument(help="A recording, or a folder of them.")],
    topic: Annotated[str, typer.Option(help="The topic to send to; it is made if it is not there.")],
    run: Annotated[str | None, typer.Option(help="Only the messages of this run.")] = None,
) -> None:
    """Send a recording's messages to a topic, headers and values as they are."""
    from provenance_store.transport.kafka import KafkaTransport

    source = RecordingSource(recording)
    _copy(source, KafkaTransport(load_settings()).sink(topic), run, f"{recording} → {topic}")


@app.command()
def shuffle(
    recording: Annotated[Path, typer.Argument(help="A recording, or a folder of them.")],
    *,
    out: Annotated[Path, typer.Option(help="The recording to write.")],
    percent: Annotated[float, typer.Option(help="Of a hundred messages, how many to put out of order.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Of a hundred messages, how many come twice.")] = 0.0,
    drop: Annotated[float, typer.Option(help="Of a hundred messages, how many are lost.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed makes the same recording.")] = 1,
) -> None:
    """Simulate a bad stream: a recording's messages out of order, repeated and lost, the manifest like any other."""
    source = ShuffledSource(recording, Shares(percent, duplicate, drop), seed=seed)
    _copy(source, RecordingSink(out), None, f"{recording} → {out}")
    told = f"{source.displaced:,} of them out of order, {source.repeated:,} repeated, {source.dropped:,} dropped"
    Console(stderr=True).print(f"Read {source.read:,}; {told}.", highlight=False)


def _copy(source: Source, sink: Sink, run: str | None, title: str) -> None:
    console = Console(stderr=True)
    size = 0
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        try:
            for count, received in enumerate(source):
                if run is None or received.message.headers.get("run") == run:
                    sink.send(received.message)
                    size += len(received.message.value)
                if count % 1000 == 0:
                    progress.update(task, description=f"{title}: {count:,} messages read")
        except BaseException:
            # What was read so far must not pass for the whole.
            if isinstance(sink, RecordingSink):
                sink.abandon()
            else:
                sink.close()
            raise
        finally:
            source.close()
    delivery = sink.close().check()
    console.print(f"{title}: {delivery.delivered:,} messages, {size / 1e6:,.1f} MB, all confirmed.", highlight=False)
