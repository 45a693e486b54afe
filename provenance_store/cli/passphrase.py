"""Where a passphrase comes from: a file, the environment, or the person; never an argument, which others can see."""

import getpass
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from provenance_store.errors import InputError

VARIABLE = "HEADWATER_PASSPHRASE"
PassphraseFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=f"A file with the passphrase in its first line; else {VARIABLE}, or asked for."),
]


def read_passphrase(file: Path | None, *, twice: bool = False) -> str:
    """The passphrase; one that is new is asked for twice."""
    if given := find_passphrase(file):
        return given
    if not sys.stdin.isatty():
        raise InputError(f"A passphrase is needed: give --passphrase-file, or set {VARIABLE}.")
    passphrase = getpass.getpass("Passphrase: ")
    if twice and getpass.getpass("Again: ") != passphrase:
        raise InputError("The two were not the same: nothing was written.")
    return passphrase


def find_passphrase(file: Path | None) -> str | None:
    """The passphrase that was given without asking for it, if any."""
    if file is None:
        return os.environ.get(VARIABLE)
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read for a passphrase: {error}") from None
    if not lines or not lines[0]:
        raise InputError(f"The first line of {file} is empty: it should be the passphrase.")
    return lines[0]
