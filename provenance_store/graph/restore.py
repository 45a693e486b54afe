"""Puts a backup into a database, so that readers see all of it or are told to wait.

The lake graph is shut first: its version becomes one that questions and merges refuse. Then what is there goes, where
that was asked for, the schema of the backup's release is made, and the files follow, a part a transaction. Each
transaction writes how many parts are in, so a restore that was cut off goes on behind them. The last one compares the
counts and opens the graph, and then it is brought to the schema of this release.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from neo4j import ManagedTransaction

from provenance_store.errors import GraphError, InputError
from provenance_store.graph.backup import MANIFEST, TABLES, Manifest, decode
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.merge import Progress
from provenance_store.graph.reduced import dataset_name
from provenance_store.graph.schema import RESTORING, STEPS, check_version, ensure_schema, read_version

PART = 10_000
# The count of parts, while what was there before is being removed.
_EMPTYING = -1


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was found whole."""

    folder: Path
    manifest: Manifest
    digest: str

    @classmethod
    def open(cls, folder: Path) -> "Backup":
        """Check every file before anything is done with one."""
        manifest = Manifest.read(folder)
        check_version(manifest.schema)
        return cls(folder, manifest, sha256((folder / MANIFEST).read_bytes()).hexdigest())

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return self.manifest.files[f"{table}.parquet"].rows

    def read(self, table: str, size: int = PART) -> Iterator[pa.Table]:
        """A table in parts."""
        with pq.ParquetFile(self.folder / f"{table}.parquet") as file:
            for rows in file.iter_batches(batch_size=size):
                yield pa.table(rows).cast(TABLES[table])

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Labels and properties of all that is not a record."""
        for part in self.read("nodes"):
            for row in part.to_pylist():
                yield {"labels": row["labels"], "properties": decode(row["properties"])}


def restore_backup(
    connection: Connection, folder: Path, *, replace: bool = False, progress: Progress = lambda done, total: None
) -> Manifest:
    """Put the backup into the database; one that holds a lake graph is refused, unless it is to be replaced."""
    backup = Backup.open(folder)
    version = connection.read(read_version)
    if version < RESTORING:
        check_version(version)
    if version == 0:
        STEPS[0](connection)  # the keys, without which two restores at once could both be first
    done = connection.write(lambda tx: _begin(tx, backup, replace=replace))
    if done == _EMPTYING:
        for query in ("restore_empty_edges", "restore_empty_nodes"):
            while connection.write(lambda tx, query=query: _empty(tx, backup, query)):  # type: ignore[misc]
                pass
        for step in STEPS[: backup.manifest.schema]:
            step(connection)
        connection.write(lambda tx: _advance(tx, backup, _EMPTYING))
    for number, (query, parameters, edges) in enumerate(_parts(backup)):
        if number >= done:
            connection.write(lambda tx, at=number, text=query, given=parameters: _put(tx, backup, at, text, given))  # type: ignore[misc]
        progress(edges, backup.rows("edges"))
    if fault := connection.write(lambda tx: _finish(tx, backup)):
        raise GraphError(fault)
    ensure_schema(connection)
    return backup.manifest


def _begin(tx: ManagedTransaction, backup: Backup, *, replace: bool) -> int:
    """Shut the lake graph; how many parts of this very backup are in."""
    restoring, restored, is_empty = tx.run(cypher("restore_lock")).single(strict=True)
    if restoring == backup.digest:
        return int(restored)
    if not (is_empty or replace):
        raise InputError(
            "This database holds a lake graph already, or part of another restore. Nothing was changed; --replace "
            "removes what is there first."
        )
    shut = RESTORING + backup.manifest.schema
    tx.run(cypher("restore_begin"), digest=backup.digest, restored=_EMPTYING, schema=shut).consume()
    return _EMPTYING


def _empty(tx: ManagedTransaction, backup: Backup, query: str) -> bool:
    return _lock(tx, backup) == _EMPTYING and tx.run(cypher(query)).single(strict=True)["removed"] > 0


def _put(tx: ManagedTransaction, backup: Backup, number: int, query: str, parameters: dict[str, Any]) -> None:
    if _advance(tx, backup, number):
        tx.run(cypher(query), parameters).consume()


def _advance(tx: ManagedTransaction, backup: Backup, number: int) -> bool:
    """Count a part, unless a transaction whose confirmation was lost, or a restore beside this one, has put it in."""
    if _lock(tx, backup) != number:
        return False
    tx.run(cypher("restore_advance"), restored=number + 1).consume()
    return True


def _lock(tx: ManagedTransaction, backup: Backup) -> int:
    restoring, restored, _ = tx.run(cypher("restore_lock")).single(strict=True)
    if restoring != backup.digest:
        raise GraphError("Another restore has begun or ended here meanwhile: look at `headwater datasets`.")
    return int(restored)


def _finish(tx: ManagedTransaction, backup: Backup) -> str | None:
    """Open the graph where it is what the backup holds; else have the next restore begin anew, and say so."""
    _lock(tx, backup)
    nodes = list(backup.nodes())
    found = tx.run(cypher("restore_counts")).single(strict=True).data()
    others = sum("LakeGraph" not in node["labels"] for node in nodes)
    expected = {"edges": backup.rows("edges"), "feeds": backup.rows("feeds"), "nodes": others}
    if found != expected:
        tx.run(cypher("restore_advance"), restored=_EMPTYING).consume()
        return (
            f"The restored graph has {found}, and the backup {expected}: something else wrote into this database. "
            "Nobody can read it as it is. Let that end, and restore again."
        )
    (lake,) = (node["properties"] for node in nodes if "LakeGraph" in node["labels"])
    tx.run(cypher("restore_finish"), lake=lake, schema=backup.manifest.schema).consume()
    return None


def _parts(backup: Backup) -> Iterator[tuple[str, dict[str, Any], int]]:
    """The statements that put it in, each with its parameters, and how many edges are in then."""
    revisions = {
        node["properties"]["id"]: node["properties"]["revision"]
        for node in backup.nodes()
        if "Run" in node["labels"] and "revision" in node["properties"]
    }
    edges = 0
    for part in backup.read("edges"):
        edges += part.num_rows
        yield "restore_edges", _edge_parameters(part, revisions), edges
    for part in backup.read("records"):
        rows = [[row["id"], decode(row["properties"])] for row in part.to_pylist()]
        yield "restore_records", {"rows": rows}, edges
    for part in backup.read("nodes"):
        rows = [
            [row["labels"], decode(row["properties"])] for row in part.to_pylist() if "LakeGraph" not in row["labels"]
        ]
        yield "restore_nodes", {"rows": rows}, edges
    for part in backup.read("feeds"):
        rows = [[row["source"], row["target"], decode(row["properties"])] for row in part.to_pylist()]
        yield "restore_feeds", {"rows": rows}, edges


def _edge_parameters(part: pa.Table, revisions: dict[str, int]) -> dict[str, Any]:
    ends = pa.chunked_array([*part["output"].chunks, *part["input"].chunks]).combine_chunks().dictionary_encode()
    outputs, inputs = np.split(ends.indices.to_numpy(), 2)
    runs = part["run"].combine_chunks().dictionary_encode()
    records = ends.dictionary.to_pylist()
    return {
        "records": records,
        "datasets": [dataset_name(record) for record in records],
        "outputs": outputs.tolist(),
        "inputs": inputs.tolist(),
        "runs": [[run, revisions[run]] for run in runs.dictionary.to_pylist()],
        "run_of": runs.indices.to_pylist(),
    }
