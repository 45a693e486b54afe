"""The ids that a bulk trace begins at, from a file: a line each, or a column of Parquet."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError

_COLUMNS = ("id", "record")
_PARQUET = b"PAR1"


def read_starts(path: Path) -> list[str]:
    """The ids, each once, in the file's order."""
    if not path.exists():
        raise InputError(f"{path} is missing: name a file of record ids, a line each, or Parquet.")
    is_parquet = path.is_dir() or path.read_bytes()[: len(_PARQUET)] == _PARQUET
    ids = list(dict.fromkeys(_read_parquet(path) if is_parquet else _read_lines(path)))
    if not ids:
        raise InputError(f"{path} holds no record id: give at least one to start from.")
    return ids


def _read_lines(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is neither Parquet nor UTF-8 text: {error}.") from None
    return [text for line in lines if (text := line.removesuffix("\r")).strip()]


def _read_parquet(path: Path) -> list[str]:
    try:
        names = pq.read_schema(path).names if path.is_file() else pq.ParquetDataset(path).schema.names
        chosen = [name for name in _COLUMNS if name in names] or (names if len(names) == 1 else [])
        if not chosen:
            raise InputError(f"{path} has columns {', '.join(names)}: name the one with the ids `id`.")
        column = pq.read_table(path, columns=chosen[:1]).column(0)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)) or column.null_count:
        raise InputError(f"{path}: column {chosen[0]} must hold a record id, as text, in every row.")
    ids: list[str] = column.to_pylist()
    return ids
