"""`headwater backup` and `restore`: a copy of the lake graph in a folder, and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from provenance_store.cli.console import print_json, show_bar, show_progress
from provenance_store.cli.passphrase import PassphraseFile, find_passphrase
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.graph.backup import Manifest

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the backup.")]
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]


@app.command()
def backup(folder: Folder, *, passphrase_file: PassphraseFile = None, as_json: Json = False) -> None:
    """Write the lake graph to a new folder, while it is in use; with a passphrase also the keys, encrypted."""
    from provenance_store.graph.queries import LakeGraph  # neo4j takes a moment to import

    with LakeGraph(load_settings()) as graph, show_progress("backing up") as say:
        passphrase = find_passphrase(passphrase_file)
        manifest = graph.backup(folder, passphrase=passphrase, tell=lambda edges: say(f"{edges:,} edges written"))
    _tell(f"Backed up to {folder}", manifest, as_json=as_json)
    if passphrase is None and not as_json:
        print("The keys of personal ids are not in it: keep them with `headwater key export`, or give a passphrase.")


@app.command()
def restore(
    folder: Folder,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Remove the lake graph that is there first.")] = False,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Restore the lake graph from a backup, with the passphrase also its keys; cut off, run it again."""
    from provenance_store.graph.backup import KEYS
    from provenance_store.graph.queries import LakeGraph  # neo4j takes a moment to import

    passphrase = find_passphrase(passphrase_file)
    with LakeGraph(load_settings()) as graph, show_bar("edges restored") as tell:
        manifest = graph.restore(folder, replace=replace, passphrase=passphrase, progress=tell)
    _tell(f"Restored from {folder}", manifest, as_json=as_json)
    if KEYS in manifest.files and passphrase is None and not as_json:
        print("The keys in it were left there: `headwater key import` takes them in.")


def _tell(what: str, manifest: "Manifest", *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(manifest))
    else:
        edges = manifest.files["edges.parquet"].rows
        print(f"{what}: {edges:,} edges, of {manifest.made_at:%Y-%m-%d %H:%M} UTC, schema {manifest.schema}.")
