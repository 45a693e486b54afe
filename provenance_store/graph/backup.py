"""A copy of the lake graph, taken while it is in use: a folder of Parquet files and a manifest.

It holds the graphs that were visible at one moment, and what cannot be made again from them; batches and graphs that
were half-way in are left out. It is written beside its place and gets its name when it is whole.
"""

import hashlib
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from neo4j import ManagedTransaction
from neo4j.time import DateTime

from provenance_store.errors import GraphError, InputError
from provenance_store.graph.connection import Connection, cypher
from provenance_store.graph.live_backup import LiveSoFar
from provenance_store.graph.liveness import find_live_runs
from provenance_store.graph.reduced import dataset_name
from provenance_store.graph.schema import read_version
from provenance_store.graph.snapshot import Period, Snapshot

FORMAT = 1
MANIFEST = "manifest.json"
KEYS = "keys.json"
PAGE = 1_000
_ROWS = 50_000
Tell = Callable[[int], None]

_TEXT = pa.large_string()
TABLES = {
    "edges": pa.schema([("output", _TEXT), ("input", _TEXT), ("run", _TEXT)]),
    # Records of which more is known than their id tells.
    "records": pa.schema([("id", _TEXT), ("properties", _TEXT)]),
    "nodes": pa.schema([("labels", pa.list_(pa.string())), ("properties", _TEXT)]),
    "feeds": pa.schema([("source", _TEXT), ("target", _TEXT), ("properties", _TEXT)]),
}
# All that a lake graph is made of. Where there is more, this release does not know how to keep it, and says so.
# Assertions of streams are left out: they are stored again from the lake, where they are kept; and how far running
# queries have been followed: see live_backup.py.
_LABELS = ("Record", "Batch", "Run", "Declared", "Live", "Dataset", "Version", "LakeGraph", "Assertion", "LiveProgress")
_KNOWN = frozenset((*_LABELS, "WAS_DERIVED_FROM", "FEEDS", "LIVE_IN"))


class File(msgspec.Struct, frozen=True):
    """What a file held when it was written."""

    rows: int  # of a table
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup is, and how to tell that it is whole."""

    format: int
    schema: int
    headwater: str
    made_at: datetime
    files: dict[str, File]

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The manifest of a backup, after a look at every byte of it."""
        path = folder / MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError:
            raise InputError(f"{folder} is not a backup: there is no {MANIFEST} in it.") from None
        except msgspec.DecodeError as error:
            raise InputError(f"{path} is not the manifest of a backup: {error}") from None
        if manifest.format > FORMAT:
            raise InputError(
                f"{folder} has format {manifest.format}, and this release reads {FORMAT}: update Headwater."
            )
        for name, file in manifest.files.items():
            if not (folder / name).is_file() or _digest(folder / name) != file.sha256:
                raise InputError(f"{folder / name} is missing or not as it was written: take another backup.")
        return manifest


def read_keys(folder: Path) -> bytes:
    """The exported key ring in a backup."""
    if not (folder / KEYS).is_file():
        raise InputError(f"{folder} holds no keys: it was made without a passphrase. Restore without one.")
    return (folder / KEYS).read_bytes()


def take_backup(
    connection: Connection, folder: Path, tell: Tell = lambda edges: None, keys: bytes | None = None
) -> Manifest:
    """Write the lake graph to `folder`, and an exported key ring; OvertakenError where a run was replaced meanwhile."""
    if folder.exists():
        raise InputError(f"{folder} is there already: name a folder that is not.")
    unfinished = folder.absolute().with_name(f".{folder.name}.{os.getpid()}")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    unfinished.mkdir(mode=0o700)
    try:
        if keys is not None:
            (unfinished / KEYS).write_bytes(keys)
        manifest = _write(connection, unfinished, tell)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished)
        raise
    return manifest


def _write(connection: Connection, folder: Path, tell: Tell) -> Manifest:
    connection.read(_check_known)
    schema, snapshot = connection.read(lambda tx: (read_version(tx), Snapshot(tx, Period())))
    if not schema:
        raise InputError("There is no lake graph in this database yet: nothing to back up.")
    rows: Counter[str] = Counter()
    live = LiveSoFar(connection.read(find_live_runs))
    with _writers(folder, rows) as put:
        for page in _pages(connection):
            connection.read(lambda tx, page=page: snapshot.pin(tx, _runs(page)))  # type: ignore[misc]
            put("records", _records(page))
            put("edges", live.count(_edges(page, snapshot)))
            tell(rows["edges"])
        # After the edges, so that whatever a running query has added to them is spoken of here.
        nodes = connection.read(lambda tx: tx.run(cypher("backup_nodes"), changes=snapshot.changes).values())
        runs = sorted(known["id"] for labels, known in nodes if "Run" in labels)
        feeds = connection.read(lambda tx: tx.run(cypher("backup_feeds"), runs=runs).values())
        for source, target, known in feeds:
            properties = encode(live.feed(source, target, known))
            put("feeds", [{"source": source, "target": target, "properties": properties}])
        fed = {name for source, target, _ in feeds for name in (source, target)}
        for labels, known in itertools.starmap(live.node, nodes):
            if "Dataset" not in labels or known["name"] in fed:
                put("nodes", [{"labels": labels, "properties": encode(_lasting(known))}])
    connection.read(snapshot.check)
    manifest = Manifest(
        format=FORMAT,
        schema=schema,
        headwater=version("headwater"),
        made_at=datetime.now(UTC),
        files={path.name: _note(path, rows[path.stem]) for path in sorted(folder.iterdir())},
    )
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    for path in (*folder.iterdir(), folder):
        _sync(path)
    return manifest


def _check_known(tx: ManagedTransaction) -> None:
    if unknown := sorted(set(tx.run(cypher("backup_kinds")).value()) - _KNOWN):
        raise GraphError(
            f"This database holds {', '.join(unknown)}, which a backup of the lake graph would leave out: a later "
            "release wrote it, or something else. Update Headwater, or give the lake graph a database of its own."
        )


def _pages(connection: Connection) -> Iterator[list[Any]]:
    """Records in the order of their ids, with all that leaves them."""
    after = ""
    while page := connection.read(
        lambda tx, after=after: tx.run(cypher("backup_page"), after=after, page=PAGE).values()  # type: ignore[misc]
    ):
        yield page
        after = page[-1][0]


def _runs(page: Iterable[Any]) -> set[str]:
    return {run for _, _, run, _, _ in page if run is not None}


def _records(page: Iterable[Any]) -> Iterator[dict[str, str]]:
    told = ""
    for record, properties, *_ in page:
        plain = {"id": record, **({"dataset": name} if (name := dataset_name(record)) is not None else {})}
        if properties != plain and record != told:
            told = record
            yield {"id": record, "properties": encode(properties)}


def _edges(page: Iterable[Any], snapshot: Snapshot) -> Iterator[dict[str, str]]:
    for record, _, run, revision, inputs in page:
        if run is not None and snapshot.follows(run, revision):
            for source in inputs:
                yield {"output": record, "input": source, "run": run}


def _lasting(properties: dict[str, Any]) -> dict[str, Any]:
    """Without what is on a node only while a merge is under way."""
    return {name: value for name, value in properties.items() if not name.startswith("staged_") and name != "unclean"}


@contextmanager
def _writers(folder: Path, counts: Counter[str]) -> Iterator[Callable[[str, Iterable[dict[str, Any]]], None]]:
    """A function that puts rows into a table; they are written many at a time."""
    waiting: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd"))
            for name, schema in TABLES.items()
        }

        def flush(name: str) -> None:
            files[name].write_table(pa.Table.from_pylist(waiting[name], TABLES[name]))
            waiting[name].clear()

        def put(name: str, rows: Iterable[dict[str, Any]]) -> None:
            for row in rows:
                waiting[name].append(row)
                counts[name] += 1
                if len(waiting[name]) >= _ROWS:
                    flush(name)

        yield put
        for name in TABLES:
            flush(name)


def encode(properties: Mapping[str, Any]) -> str:
    """What is known of a node or a relationship, as JSON; a time is `{"datetime": …}`, as no property is a map."""
    return msgspec.json.encode(properties, enc_hook=_encode_value).decode()


def decode(text: str) -> dict[str, Any]:
    """The same, as the database takes it."""
    properties: dict[str, Any] = msgspec.json.decode(text)
    return {
        name: DateTime.from_iso_format(value["datetime"]) if isinstance(value, dict) else value
        for name, value in properties.items()
    }


def _encode_value(value: Any) -> dict[str, str]:
    if isinstance(value, DateTime):
        return {"datetime": value.iso_format()}
    raise GraphError(f"A backup cannot hold a property of type {type(value).__name__}: update Headwater.")


def _note(path: Path, rows: int) -> File:
    return File(rows, path.stat().st_size, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
