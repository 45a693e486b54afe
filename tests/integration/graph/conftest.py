"""A lake graph on the session's Neo4j, and reduced graphs to merge into it. Names are unique, the database shared."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from provenance_store.graph.queries import LakeGraph
from provenance_store.model.account import Account
from provenance_store.settings import Settings

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

    def write(run, edges, *, dic="dic", verdict="complete", generation=0, row_group_size=None) -> Path:
        folder = tmp_path / f"reduced-{next(numbers)}"
        folder.mkdir()
        edges = sorted(set(edges))
        table = pa.table(
            {
                "output": pa.array([e[0] for e in edges], pa.string()),
                "input": pa.array([e[1] for e in edges], pa.string()),
            }
        )
        pq.write_table(table, folder / "graph.parquet", row_group_size=row_group_size)
        zeros = dict.fromkeys(
            ("messages", "bytes", "edges_in", "edges_local", "duplicates", "discarded", "rejected"), 0
        )
        Account(
            run=run,
            dic=dic,
            verdict=verdict,
            generation=generation,
            edges_out=len(edges),
            missing={},
            seconds=0.1,
            **zeros,
        ).write(folder)
        return folder

    return write
