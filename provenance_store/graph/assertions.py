"""Assertions of stream runs in Neo4j, for Cypher: `(:Assertion {run, lane, stream, sequence, timestamp, delay})`.

Only keys are there, as on disk; contents stay where the records are. Storing a run's again changes nothing.
"""

from collections.abc import Iterator
from itertools import product

from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.schema import statements
from provenance_store.streams.keys import Keys
from provenance_store.streams.runs import StreamRun

_AT_ONCE = 10_000


def store_assertions(connection: Connection, run: StreamRun) -> int:
    """Store the keys of every event of a run, those too that follow from others; how many there are."""
    for statement in statements("assertions_schema"):
        connection.write(lambda tx, one=statement: tx.run(one).consume())  # type: ignore[misc]
    names = [source.name for source in run.query.sources] + [one.name for one in run.query.operators]
    stored = 0
    for lane, stream in product(run.lanes(), names):
        for rows in _parts(run.inference(lane).keys(stream)):
            parameters = {"run": run.facts.run, "lane": lane, "stream": stream, "rows": rows}
            connection.write(lambda tx, given=parameters: tx.run(cypher("assertions_store"), given).consume())  # type: ignore[misc]
            stored += len(rows)
    return stored


def forget_assertions(connection: Connection, run: str) -> int:
    """Remove what is stored of a run; how many there were."""
    parameters, count = {"run": run, "most": _AT_ONCE}, 0
    while some := connection.write(lambda tx: tx.run(cypher("assertions_forget"), parameters).single(strict=True)[0]):
        count += some
    return count


def _parts(keys: Keys) -> Iterator[list[list[int]]]:
    columns = (keys.sequences.tolist(), keys.timestamps.tolist(), keys.delays.tolist())
    rows = [list(row) for row in zip(*columns, strict=True)]
    for first in range(0, len(rows), _AT_ONCE):
        yield rows[first : first + _AT_ONCE]
