"""Fingerprints of purged records: by them a record that comes back is known, and nothing else is told of it.

A fingerprint is a keyed hash (HMAC-SHA-256) of the record's key, or of all that it holds where its dataset has none,
under the newest secret of the key ring. Destroy that secret, and it is a number that leads to nobody.
"""

import hmac
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.catalogue import Catalogue, Dataset
from provenance_store.lake.columns import Records, keys_of
from provenance_store.lake.contents import all_lines, all_rows, read_lines, read_rows
from provenance_store.lake.layout import Version, version_of
from provenance_store.lake.places import Positions
from provenance_store.model.ids import file_prefix, key_text
from provenance_store.model.keys import KeyRing, fingerprint
from provenance_store.purge import folders
from provenance_store.purge.plan import Step, StoredPlan
from provenance_store.settings import Settings
from provenance_store.storage.paths import RemotePath, staged

FILE = "fingerprints.parquet"
_BLOCK = 50_000
# `key` names the columns that are hashed, with commas between; none where it is the whole record.
_SCHEMA = pa.schema([(name, pa.large_string()) for name in ("id", "dataset", "key", "secret", "fingerprint")])
_object = msgspec.json.Decoder(dict[str, Any])


class Recognised(NamedTuple):
    """A record of the lake that was purged before, under the id that it had then, by a plan."""

    id: str
    purged: str
    purge: str


def deleted_of(stored: StoredPlan, step: Step) -> pl.DataFrame:
    """The records of a step that are taken out, whatever may be made anew."""
    records = stored.records(step)
    if step.policy == "delete":
        return records
    return records.filter("selected") if step.policy == "recompute" else records.clear()


def fingerprint_records(settings: Settings, stored: StoredPlan) -> None:
    """Keep the fingerprints of all records that a plan takes out, in its folder; where they are kept, they stay."""
    target = stored.path / FILE
    if target.exists():
        return
    secret = KeyRing(settings).read().secrets[0]
    catalogue = Catalogue.load(settings.lake)
    with _unfinished(target) as unfinished, pq.ParquetWriter(unfinished, _SCHEMA, compression="zstd") as writer:
        for step in stored.plan.steps:
            told = catalogue.of(step.dataset)
            version = version_of(settings.lake, step.dataset, step.version)
            for rows in deleted_of(stored, step).partition_by("file", maintain_order=True):
                for block in rows.iter_slices(_BLOCK):
                    writer.write_table(_hash_block(version, told, block, secret))


def read_fingerprints(stored: StoredPlan) -> pl.LazyFrame:
    """What was kept: id, dataset, key, secret, fingerprint."""
    return folders.scan_parquet(stored.path / FILE)


def scan(version: Version, told: Dataset, secret: bytes) -> Iterator[tuple[str, Positions, list[str]]]:
    """The fingerprints of all records of a version with their positions, in blocks of a file each."""
    for path in version.files():
        file = version.name_of(path)
        if told.format == "parquet":
            for positions, batch in all_rows(version, file, told.key or None):
                yield file, positions, _hash(secret, _told_of_rows(version, told, file, positions, batch))
        else:
            for positions, lines in all_lines(version, file):
                yield file, positions, _hash(secret, _told_of(version.dataset, told, lines))


def recognise(settings: Settings, graph: LakeGraph, version: Version) -> Iterator[Recognised]:
    """The records of a version that were purged before and came back."""
    told = Catalogue.load(settings.lake).of(version.dataset)
    # Of a dataset that has its key since a purge, records were known by all that they hold.
    ways = [told, msgspec.structs.replace(told, key=())] if told.key else [told]
    for secret in KeyRing(settings).read().secrets:
        for way in ways:
            for file, positions, hashes in scan(version, way, secret):
                yield from _recognised(graph, version, file, positions, written(secret, hashes))


def written(secret: bytes, hashes: Iterable[str]) -> list[str]:
    """Fingerprints as the lake graph has them, with the name of their secret."""
    name = fingerprint(secret)
    return [f"{name}:{one}" for one in hashes]


def _recognised(
    graph: LakeGraph, version: Version, file: str, positions: Positions, fingerprints: list[str]
) -> Iterator[Recognised]:
    known = {one.fingerprint: one for one in graph.recognise(fingerprints)}
    prefix = file_prefix(version.dataset, version.name, file)
    for position, mark in zip(positions.tolist(), fingerprints, strict=True):
        if mark in known:
            yield Recognised(f"{prefix}{position}", known[mark].id, known[mark].purge)


def _hash_block(version: Version, told: Dataset, rows: pl.DataFrame, secret: bytes) -> pa.Table:
    """The fingerprints of records of one file."""
    file, positions = rows["file"][0], rows["position"].to_numpy()
    if told.format == "parquet":
        table, there = read_rows(version, file, positions, told.key or None)
        told_of = _told_of_rows(version, told, file, there, table)
        ids = rows.filter(pl.Series(np.isin(positions, there)))["id"]
    else:
        lines = read_lines(version, file, positions)
        told_of = _told_of(version.dataset, told, [line for line in lines if line is not None])
        ids = rows.filter(pl.Series([line is not None for line in lines], dtype=pl.Boolean))["id"]
    columns = {
        "id": ids.to_arrow(),
        "dataset": [version.dataset] * len(ids),
        "key": [columns for columns, _ in told_of],
        "secret": [fingerprint(secret)] * len(ids),
        "fingerprint": _hash(secret, told_of),
    }
    return pa.table(columns).cast(_SCHEMA)


def _hash(secret: bytes, told_of: Iterable[tuple[str, bytes]]) -> list[str]:
    return [hmac.digest(secret, message, "sha256").hex() for _, message in told_of]


def _told_of(dataset: str, told: Dataset, records: Records) -> list[tuple[str, bytes]]:
    """By which columns each record is known, and the message that its fingerprint is of."""
    keys: Sequence[Any] = keys_of(told, records) if told.key else [None] * len(records)
    by = ",".join(told.key)
    first = f"purged key {dataset} {by} ".encode()
    whole = iter(_contents(dataset, told, records, [key is None for key in keys]))
    return [("", next(whole)) if key is None else (by, first + key_text(*key).encode()) for key in keys]


def _told_of_rows(
    version: Version, told: Dataset, file: str, positions: Positions, rows: pa.Table | pa.RecordBatch
) -> list[tuple[str, bytes]]:
    """The same of rows, of which only the key's columns were read, if there is one."""
    found = _told_of(version.dataset, told, rows)
    unkeyed = [number for number, (by, _) in enumerate(found) if not by]
    if told.key and unkeyed:
        table, _ = read_rows(version, file, positions[unkeyed])
        keyless = msgspec.structs.replace(told, key=())
        for number, one in zip(unkeyed, _told_of(version.dataset, keyless, table), strict=True):
            found[number] = one
    return found


def _contents(dataset: str, told: Dataset, records: Records, wanted: list[bool]) -> Iterator[bytes]:
    """What whole records hold, in one form whatever the order of their fields and however nulls are written."""
    first = f"purged record {dataset} ".encode()
    if isinstance(records, pa.Table | pa.RecordBatch):
        chosen: Iterable[Any] = records.filter(pa.array(wanted, pa.bool_())).to_pylist()
    else:
        chosen = (record for record, is_wanted in zip(records, wanted, strict=True) if is_wanted)
    for record in chosen:
        yield first + _canonical(told, record)


def _canonical(told: Dataset, record: Any) -> bytes:
    if isinstance(record, bytes):
        if told.format != "jsonl":
            return record
        try:
            fields = _object.decode(record)
        except (msgspec.DecodeError, UnicodeError):
            return record
    else:
        fields = record
    try:
        return msgspec.json.encode({name: value for name, value in fields.items() if value is not None}, order="sorted")
    except OverflowError:  # a number that JSON has room for and msgspec has not
        return repr(sorted(fields.items())).encode()


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """A file to write, which gets its name when the block ends well."""
    if isinstance(target, RemotePath):
        with staged(target) as unfinished:
            yield unfinished
        return
    unfinished = target.with_name(f".{FILE}.{os.getpid()}")
    yield unfinished
    _sync(unfinished)
    unfinished.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
