"""Fields of records emptied or replaced, as the catalogue's policy `redact` tells; all else stays byte for byte."""

import csv
import io
import re
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset, Redact, Value

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def redact_lines(told: Dataset, lines: Sequence[bytes]) -> list[bytes]:
    """The lines, redacted; a blank one has no fields."""
    change = _change_of(told)
    return [change(line) if line.strip() else line for line in lines]


def redact_rows(told: Dataset, rows: pa.Table) -> pa.Table:
    """The rows, redacted."""
    for name, value in _fields(told).items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        if value is None and not field.nullable:
            raise InputError(
                f"Column {name!r} cannot be empty, so it cannot be redacted to null: replace it by a value."
            )
        try:
            column = pa.array([value] * len(rows), field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise InputError(
                f"Column {name!r} is {field.type}, which its replacement in the catalogue is not."
            ) from None
        rows = rows.set_column(place, field, column)
    return rows


def _fields(told: Dataset) -> dict[str, Value | None]:
    assert isinstance(told.policy, Redact)  # noqa: S101 - whoever asks has looked
    return told.policy.fields


def _change_of(told: Dataset) -> Callable[[bytes], bytes]:
    fields = _fields(told)
    if told.format == "jsonl":
        return lambda line: _redact_object(line, fields)
    columns = told.known_columns or ()
    texts = {columns.index(name): _as_text(told, value) for name, value in fields.items()}
    separator = told.divides_at
    if separator is None:
        return lambda _: texts[0]
    part = re.escape(separator.encode())
    quoted = rb'"(?:[^"\\]|\\.|"")*"|' if told.format == "csv" else b""
    field = re.compile(rb"(?>%b[^%b]*)" % (quoted, part), re.DOTALL)
    return lambda line: _redact_fields(line, field, separator.encode(), texts)


def _redact_object(line: bytes, fields: dict[str, Value | None]) -> bytes:
    try:
        there = _object.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        raise InputError("A line that is to be redacted is not a JSON object: `headwater catalogue check`.") from None
    redacted = {name: fields.get(name, value) for name, value in there.items()}
    return msgspec.json.encode(redacted)


def _redact_fields(line: bytes, field: re.Pattern[bytes], separator: bytes, texts: dict[int, bytes]) -> bytes:
    made, place, number = [], 0, 0
    while found := field.match(line, place):
        made.append(texts.get(number, found[0]))
        number, place = number + 1, found.end() + len(separator)
        if found.end() == len(line):
            break
    if number <= max(texts):
        raise InputError("A line that is to be redacted has fewer columns than told: `headwater catalogue check`.")
    return separator.join(made)


def _as_text(told: Dataset, value: Value | None) -> bytes:
    if value is None:
        return b""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    if told.format == "csv":
        written = io.StringIO()
        csv.writer(written, delimiter=told.divides_at or ",", lineterminator="").writerow([text])
        text = written.getvalue()
    elif told.divides_at is not None and told.divides_at in text:
        raise InputError("A replacement in the catalogue holds the separator of its columns: choose another.")
    if "\n" in text:
        raise InputError("A replacement in the catalogue holds a line break: choose another.")
    return text.encode()
