"""Whether a lake is as its catalogue tells: every dataset named, every file of its format, every column there.

Faults are sentences. They name records by their ids, and never quote what stands in them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue, Dataset, Redact
from provenance_store.lake.columns import splitter
from provenance_store.lake.lines import open_lines
from provenance_store.lake.records import lines_in

# The columns of a line; InputError says what is wrong with it.
Look: TypeAlias = Callable[[bytes], tuple[str, ...]]

_PARQUET = b"PAR1"
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def find_faults(root: Path) -> Iterator[str]:
    """All that is wrong; of each file, the first thing."""
    catalogue = Catalogue.load(root)
    for name in layout.list_datasets(root):
        if name not in catalogue.datasets:
            yield f"{name} is in the lake and not in {catalogue.path}: no purge can tell what to do with it."
    for name, dataset in catalogue.datasets.items():
        for fault in _faults_told(catalogue.path.parent, dataset):
            yield f"{name}: {fault}"
        for version in layout.list_versions(root, name):
            for fault in _faults_of(version, dataset):
                yield f"{version.reference}: {fault}"


def _faults_told(root: Path, dataset: Dataset) -> Iterator[str]:
    if isinstance(dataset.policy, Redact):
        for column in dataset.personal:
            if column not in dataset.policy.fields:
                yield f"column {column!r} is personal, and its policy leaves that as it is: name it in null or replace."
    if dataset.suite is not None:
        path = root / dataset.suite
        try:
            msgspec.json.decode(path.read_bytes())
        except OSError as error:
            yield f"its suite {path} cannot be read: {error.strerror}."
        except msgspec.DecodeError as error:
            yield f"its suite {path} is not JSON: {error}."


def _faults_of(version: layout.Version, dataset: Dataset) -> Iterator[str]:
    needed = dict.fromkeys(column for columns in dataset.named_columns.values() for column in columns)
    # JSON leaves out what is null, so a column need not be in every line; but where it is in none, it is misspelt.
    found: set[str] = set()
    sound = True
    for file in version.files():
        try:
            if dataset.format == "parquet":
                _check_schema(file, list(needed))
            else:
                found |= _look_through(version, file, _look_for(dataset))
        except InputError as error:
            sound = False
            yield str(error)
        except (pa.ArrowException, OSError) as error:
            sound = False
            yield f"{file} cannot be read as {dataset.format}: {error}."
    if sound and found:
        for column in needed:
            if column not in found:
                yield f"no record has a column {column!r}."


def _check_schema(file: Path, needed: list[str]) -> None:
    with file.open("rb") as content:
        there = pq.read_schema(content).names
    for column in needed:
        if column not in there:
            raise InputError(f"{file} has no column {column!r}; it has {', '.join(there)}.")


def _look_through(version: layout.Version, file: Path, look: Look) -> set[str]:
    with open_lines(file) as lines:
        if lines.read(len(_PARQUET)) == _PARQUET:
            raise InputError(f"{file} is Parquet, and its format is told to be one of lines.")
    found: set[tuple[str, ...]] = set()
    for record, line in lines_in(version, file):
        if line.strip():
            try:
                found.add(look(line))
            except InputError as error:
                raise InputError(f"{record} {error}") from None
    return {column for columns in found for column in columns}


def _look_for(dataset: Dataset) -> Look:
    if dataset.format == "jsonl":
        return _look_at_json
    columns = dataset.known_columns or ()
    split = splitter(dataset)

    def look(line: bytes) -> tuple[str, ...]:
        if split(line) is None:
            raise InputError(f"is not a line of {len(columns)} columns.")
        return columns

    return look


def _look_at_json(line: bytes) -> tuple[str, ...]:
    try:
        return tuple(_object.decode(line))
    except (msgspec.DecodeError, UnicodeError):
        raise InputError("is not a JSON object.") from None
