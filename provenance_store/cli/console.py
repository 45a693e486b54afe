"""Consoles that fit where they print: a terminal's own width, and lines that are not broken where a program reads."""

import sys

from rich.console import Console

_WIDE = 400


def make_console(*, stderr: bool = False) -> Console:
    """A console on standard output, or on standard error."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDE)
