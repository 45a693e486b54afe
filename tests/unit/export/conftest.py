"""Reduced graphs in folders."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.reduced import write_reduced

Reduced = Callable[..., Path]


@pytest.fixture
def reduced(tmp_path: Path) -> Reduced:
    """Writes a reduced graph's folder."""

    def write(run: str, edges: Iterable[tuple[str, str]], *, name: str | None = None, **account) -> Path:
        return write_reduced(tmp_path / "reduced" / (name or run), run, edges, **account)

    return write
