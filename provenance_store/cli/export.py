"""`headwater export`: reduced graphs for catalogues and PROV tools, read from their folders."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from provenance_store.cli.console import make_console
from provenance_store.errors import InputError

if TYPE_CHECKING:
    from provenance_store.graph.reduced import ReducedGraph

app = typer.Typer()
export_app = typer.Typer(help="Write reduced graphs for others: W3C PROV, OpenLineage.", no_args_is_help=True)
app.add_typer(export_app, name="export")


class ProvFormat(StrEnum):
    """The serialisations of PROV that can be written while reading."""

    PROV_N = "prov-n"
    PROV_JSON = "prov-json"


Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR…", help="Folders that `headwater reduce` wrote, or that hold such folders.")
]
Out = Annotated[Path | None, typer.Option(help="The file to write; standard output where not given.")]


@export_app.command()
def prov(
    folders: Folders,
    *,
    form: Annotated[ProvFormat, typer.Option("--format", help="How PROV is written.")] = ProvFormat.PROV_N,
    out: Out = None,
) -> None:
    """Write reduced graphs as one W3C PROV document, of each run the newest generation."""
    from provenance_store.export.prov_stream import write_prov_json, write_provn

    write = {ProvFormat.PROV_N: write_provn, ProvFormat.PROV_JSON: write_prov_json}[form]
    graphs = _find(folders)
    with _opened(out) as file:
        write(graphs, file)


@export_app.command()
def openlineage(
    folders: Folders,
    *,
    job_namespace: Annotated[str, typer.Option(help="The namespace of DICs.")] = "headwater",
    dataset_namespace: Annotated[str, typer.Option(help="The namespace of datasets.")] = "lake",
    out: Out = None,
) -> None:
    """Write runs as OpenLineage events, a line each: which datasets fed which, and with which verdict."""
    from provenance_store.export.openlineage import Namespaces, run_events, write_event

    namespaces = Namespaces(job_namespace, dataset_namespace)
    graphs = _find(folders)
    with _opened(out) as file:
        for graph in graphs:
            for event in run_events(graph, namespaces):
                file.write(write_event(event).encode() + b"\n")


def _find(folders: list[Path]) -> "list[ReducedGraph]":
    from provenance_store.export.folders import find_graphs

    found = find_graphs(folders)
    for folder in found.unfinished:
        make_console(stderr=True).print(f"Left out {folder}: it holds no finished reduction.", markup=False)
    return found.graphs


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears under its name only when it is whole."""
    if out is None:
        yield sys.stdout.buffer
        return
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        file = unfinished.open("wb")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}.") from error
    try:
        with file:
            yield file
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
