"""`headwater key`: the secrets under which keys that may be personal are hashed into ids."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from provenance_store.cli.console import make_console, print_json
from provenance_store.cli.passphrase import PassphraseFile, read_passphrase
from provenance_store.errors import InputError
from provenance_store.settings import load_settings

if TYPE_CHECKING:
    from provenance_store.model.keys import KeyRing

app = typer.Typer()
key_app = typer.Typer(help="The keys under which personal keys are hashed into ids.", no_args_is_help=True)
app.add_typer(key_app, name="key")

T = TypeVar("T")
Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]


@key_app.command()
def show(as_json: Json = False) -> None:
    """Show the fingerprints of the keys, the newest first, and how many versions each is for."""
    from provenance_store.model.keys import fingerprint

    ring = _ring().read()
    versions = Counter(ring.versions.values())
    rows = [{"key": name, "versions": versions[name]} for name in map(fingerprint, ring.secrets)]
    if as_json:
        print_json(rows)
        return
    for number, row in enumerate(rows):
        use = "for new versions, and" if number == 0 else "for"
        make_console().print(f"{row['key']}  {use} {row['versions']:,} that there are")


@key_app.command()
def rotate() -> None:
    """Make a new key for versions to come; versions that there are keep theirs."""
    name = _kept("key rotate", {}, _ring().rotate, lambda name: {"key": name})
    print(f"New ids are made with {name}. Keep it safe: `headwater key export FILE`.")


@key_app.command()
def destroy(
    fingerprint: Annotated[str, typer.Argument(metavar="FINGERPRINT", help="As `headwater key show` tells it.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Destroy an old key: nobody can link the ids that were made with it to a person again, or find them by key."""
    if not yes:
        typer.confirm(f"There is no way back, but from an export. Destroy {fingerprint}?", abort=True)
    lost = _kept(
        "key destroy", {"key": fingerprint}, lambda: _ring().destroy(fingerprint), lambda lost: {"versions": lost}
    )
    print(f"Destroyed. The ids of {len(lost):,} versions stand for nobody now. Exports and backups may still hold it.")


@key_app.command(name="export")
def export_ring(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that is not there yet.")],
    *,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Write all keys to a file, encrypted under a passphrase."""
    passphrase = read_passphrase(passphrase_file, twice=True)
    _kept("key export", {"file": str(file)}, lambda: write_new(file, _ring().export(passphrase)), lambda _: {})
    print(f"Written to {file}. Without the passphrase it is of no use to anyone, nor to you.")


@key_app.command(name="import")
def import_ring(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `headwater key export` wrote.")],
    *,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Take in exported keys; where there is a key already, new ids go on to be made with that."""
    try:
        exported = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    passphrase = read_passphrase(passphrase_file)
    new = _kept("key import", {"file": str(file)}, lambda: _ring().add(exported, passphrase), lambda new: {"keys": new})
    print("New here: " + (", ".join(new) or "none") + ".")


def write_new(file: Path, data: bytes) -> None:
    """Write a file that only its owner reads; one that is there is left as it is."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)


def _ring() -> "KeyRing":
    from provenance_store.model.keys import KeyRing

    return KeyRing(load_settings())


def _kept(kind: str, asked: Mapping[str, Any], act: Callable[[], T], ending: Callable[[T], Mapping[str, Any]]) -> T:
    from provenance_store.graph.audit import Audit

    return Audit(load_settings()).keep(kind, asked, act, ending)
