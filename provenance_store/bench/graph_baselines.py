"""What merging is measured beside: a transaction an output, as one would first write it.

By one statement, which takes all inputs of the output, and by a statement an edge; each looks for what may be there.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import polars as pl

from provenance_store.graph.connection import Connection
from provenance_store.graph.schema import ensure_schema
from provenance_store.settings import Settings

_WARM_OUTPUTS = 50
_ONE_OUTPUT = """
MERGE (output:Record {id: $output})
WITH output
UNWIND $inputs AS id
MERGE (input:Record {id: id})
MERGE (output)-[:WAS_DERIVED_FROM {run: 'baseline'}]->(input)
"""
_ONE_EDGE = """
MERGE (output:Record {id: $output})
MERGE (input:Record {id: $input})
MERGE (output)-[:WAS_DERIVED_FROM {run: 'baseline'}]->(input)
"""
# It is so slow that fewer tell as much.
_FEWER_BY_EDGES = 5


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """One way to get edges into the graph."""

    way: str
    outputs: int
    edges: int
    seconds: float

    @property
    def rate(self) -> float:
        """Edges a second of wall-clock time."""
        return self.edges / self.seconds


def merge_singly(settings: Settings, edges: pl.DataFrame, count: int) -> list[Merging]:
    """Merge so many outputs by one statement each, and fewer by a statement an edge."""
    connection = Connection(settings)
    try:
        ensure_schema(connection)
        return [
            _merge_outputs(connection, "one transaction an output", _by_output, edges, count),
            _merge_outputs(
                connection,
                "one transaction an output, a statement an edge",
                _by_edges,
                edges,
                max(1, count // _FEWER_BY_EDGES),
            ),
        ]
    finally:
        connection.close()


def _merge_outputs(
    connection: Connection, way: str, merge: Callable[..., None], edges: pl.DataFrame, count: int
) -> Merging:
    # Other ids, so that whatever merges after this finds nothing there.
    other = edges.with_columns(pl.all().str.replace("lake:", f"lake:{merge.__name__}-", literal=True))
    outputs = other.group_by("output", maintain_order=True).agg("input")
    rows = list(outputs.sample(min(_WARM_OUTPUTS + count, outputs.height), seed=1).iter_rows())
    warm, measured = rows[:_WARM_OUTPUTS], rows[_WARM_OUTPUTS:]
    for part in (warm, measured):
        began = time.monotonic()
        for output, inputs in part:
            connection.write(partial(merge, output=output, inputs=inputs))
        seconds = time.monotonic() - began
    return Merging(way=way, outputs=len(measured), edges=sum(len(inputs) for _, inputs in measured), seconds=seconds)


def _by_output(tx: Any, *, output: str, inputs: list[str]) -> None:
    tx.run(_ONE_OUTPUT, output=output, inputs=inputs).consume()


def _by_edges(tx: Any, *, output: str, inputs: list[str]) -> None:
    for record in inputs:
        tx.run(_ONE_EDGE, output=output, input=record)
