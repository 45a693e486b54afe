"""The columns of records, and their keys, as the catalogue tells of their dataset and as captured jobs see them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset

Records: TypeAlias = Sequence[bytes] | pa.Table | pa.RecordBatch
Key: TypeAlias = tuple[str, ...]

_QUOTE = b'"'
_ESCAPED = re.compile(rb'\\(["\\])')
_object = msgspec.json.Decoder(dict[str, Any])


def columns_of(told: Dataset, records: Records, only: Sequence[str] | None = None) -> pa.Table:
    """All columns of these records, or only some, in their order; a row each, of nulls for a blank line of JSON or CSV.

    Delimited lines hold texts. In JSON, a column whose values are of several types becomes one of texts, as in Spark.
    """
    if isinstance(records, pa.Table | pa.RecordBatch):
        table = pa.table(records)
        return table if only is None else table.select(_known(only, table.schema.names))
    divide = _divider(told)
    rows = [divide(line) for line in records]
    for number, row in enumerate(rows):
        if row is None:
            raise InputError(
                f"Line {number + 1} of {len(rows)} cannot be divided into its columns: `headwater catalogue check` "
                "names it."
            )
    found = [row for row in rows if row is not None]
    names = told.known_columns or tuple(dict.fromkeys(name for row in found for name in row))
    # JSON leaves out what is null, so there a column may be in none of these records and still be known.
    wanted = names if only is None else only if told.known_columns is None else _known(only, names)
    return pa.table({name: _array([row.get(name) for row in found]) for name in wanted})


def keys_of(told: Dataset, records: Records) -> list[Key | None]:
    """The values of the key's columns, as texts; None for a record that has none, because a part of it is null."""
    if not told.key:
        raise InputError(
            "The catalogue tells no key of this dataset: name the columns by which a record is recognised."
        )
    if isinstance(records, pa.Table | pa.RecordBatch):
        table = columns_of(told, records, told.key)
        parts: Iterable[Sequence[str | None]] = zip(*(_texts(name, table[name]) for name in told.key), strict=True)
    else:
        divide = _divider(told)
        rows = (divide(line) or {} for line in records)
        parts = ([_text(name, row.get(name)) for name in told.key] for row in rows)
    return [tuple(part for part in key if part is not None) if None not in key else None for key in parts]


def splitter(told: Dataset) -> Callable[[bytes], Sequence[bytes] | None]:
    """How a line is parted into its fields, as they stand there; gives None for a line that has others."""
    if told.divides_at is None:
        return lambda line: [line]
    count, mark = len(told.columns), told.divides_at.encode()
    # Spark quotes a field that holds the separator, and escapes quotes within by a backslash; others double them.
    field = rb'((?>"(?:[^"\\]|\\.|"")*"|[^%b]*))' % re.escape(mark)
    quoted = re.compile(re.escape(mark).join([field] * count), re.DOTALL)

    def split(line: bytes) -> Sequence[bytes] | None:
        if told.format == "csv":
            line = line.removesuffix(b"\r")
            if _QUOTE in line:
                found = quoted.fullmatch(line)
                return found.groups() if found else None
        fields = line.split(mark)
        return fields if len(fields) == count else None

    return split


def _divider(told: Dataset) -> Callable[[bytes], Mapping[str, Any] | None]:
    """How a line becomes its columns by name; gives None for one that is not of the format."""
    if told.format == "jsonl":
        return _divide_json
    split, names = splitter(told), told.known_columns or ()
    value = _csv_value if told.format == "csv" else _decode

    def divide(line: bytes) -> Mapping[str, Any] | None:
        if told.format == "csv" and not line.strip():
            return {}
        fields = split(line)
        return None if fields is None else dict(zip(names, map(value, fields), strict=True))

    return divide


def _divide_json(line: bytes) -> Mapping[str, Any] | None:
    if not line.strip():
        return {}
    try:
        return _object.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _csv_value(field: bytes) -> str | None:
    if field.startswith(_QUOTE):
        return _decode(_ESCAPED.sub(rb"\1", field[1:-1]))
    return _decode(field) if field else None


def _decode(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _known(asked: Sequence[str], names: Sequence[str]) -> list[str]:
    for name in asked:
        if name not in names:
            raise InputError(f"There is no column {name!r}; there are {', '.join(names)}.")
    return list(asked)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _text(name: str, value: Any) -> str | None:
    """A value of JSON as Spark casts it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int):
        return str(value).lower()
    raise _unfit(name, type(value).__name__)


def _texts(name: str, column: pa.ChunkedArray) -> list[str | None]:
    """The values of a column as Spark casts them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in column.to_pylist()]
    if not any(is_kind(kind) for is_kind in _CAST_ALIKE):
        raise _unfit(name, str(kind))
    texts: list[str | None] = column.cast(pa.string()).to_pylist()
    return texts


# What Arrow and Spark write alike.
_CAST_ALIKE = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_null,
)


def _unfit(name: str, kind: str) -> InputError:
    return InputError(
        f"Column {name!r} is part of a key and of type {kind}, of which the text is not certain: use texts, whole "
        "numbers, decimals, truth values or dates as keys."
    )
