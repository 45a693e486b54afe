"""Rewrites files of a version as a purge does: records vanish or change, and all others keep their ids."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provenance_store.lake.contents import all_lines, all_rows
from provenance_store.lake.drafts import begin_draft, discard, switch
from provenance_store.lake.layout import Version
from provenance_store.lake.rewriting import LineEdit, RowEdit, rewrite


def rewrite_lines(version: Version, file: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Every line becomes what `change` makes of it, without line breaks; None takes it out."""
    name = str(file.relative_to(version.path))
    made = {
        position: change(line)
        for positions, lines in all_lines(version, name)
        for position, line in zip(positions.tolist(), lines, strict=True)
    }
    removed = [position for position, line in made.items() if line is None]
    changed = {position: line for position, line in made.items() if line is not None}
    _rewrite(version, name, LineEdit(removed, changed))


def rewrite_rows(version: Version, file: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Rows that are not to be kept are taken out."""
    name = str(file.relative_to(version.path))
    removed = [
        position
        for positions, batch in all_rows(version, name)
        for position, row in zip(positions.tolist(), batch.to_pylist(), strict=True)
        if not keep(row)
    ]
    _rewrite(version, name, RowEdit(removed))


def _rewrite(version: Version, file: str, edit: LineEdit | RowEdit) -> None:
    draft = begin_draft(version, f"p-{os.urandom(4).hex()}")
    rewrite(version, file, edit, draft)
    switch(version, draft)
    discard(draft)
