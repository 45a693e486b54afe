"""A lake graph on the session's Neo4j, and reduced graphs to merge into it. Names are unique, the database shared."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import Settings
from tests.reduced import write_reduced

Reduced = Callable[..., Path]


@pytest.fixture
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


@pytest.fixture
def word() -> str:
    """A word that nothing else in the database begins with."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def reduced(tmp_path: Path) -> Reduced:
    """Writes a reduced graph's folder."""
    numbers = itertools.count()

    def write(run, edges, **told) -> Path:
        return write_reduced(tmp_path / f"reduced-{next(numbers)}", run, edges, **told)

    return write
