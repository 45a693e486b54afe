import pyarrow as pa
import pytest

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset, Redact
from provenance_store.purge.redaction import redact_lines, redact_rows

FIELDS = Redact(null=("name",), replace={"age": 0, "told": "gone"})


def test_json_keeps_everything_else_byte_for_byte() -> None:
    told = Dataset(format="jsonl", policy=FIELDS)
    lines = [b'{"name":"Ann","n":1.50e1,"age":7,"more":{"name":"x"}}', b"", b'{"n":10000000000000000000000}']
    assert redact_lines(told, lines) == [
        b'{"name":null,"n":1.50e1,"age":0,"more":{"name":"x"}}',
        b"",
        b'{"n":10000000000000000000000}',
    ]
    with pytest.raises(InputError, match="not a JSON object"):
        redact_lines(told, [b'["Ann"]'])


def test_divided_lines() -> None:
    columns = ("id", "name", "age", "told")
    text = Dataset(format="text", columns=columns, separator="\t", policy=FIELDS)
    assert redact_lines(text, [b"1\tAnn\t7\tyes"]) == [b"1\t\t0\tgone"]
    assert redact_lines(text, [b"1\t\t\t"]) == [b"1\t\t0\tgone"]
    csv = Dataset(format="csv", columns=columns, policy=Redact(replace={"name": 'so, "so"', "told": True}))
    assert redact_lines(csv, [b'"1,""2",Ann,"a\\"b",no']) == [b'"1,""2","so, ""so""","a\\"b",true']
    with pytest.raises(InputError, match="fewer columns"):
        redact_lines(text, [b"1\tAnn"])
    with pytest.raises(InputError, match="separator"):
        redact_lines(
            Dataset(format="text", columns=columns, separator="\t", policy=Redact(replace={"id": "\t"})), [b"1"]
        )
    whole = Dataset(format="text", policy=Redact(replace={"value": "removed"}))
    assert redact_lines(whole, [b"Ann\tBob"]) == [b"removed"]


def test_rows() -> None:
    told = Dataset(format="parquet", policy=Redact(null=("name",), replace={"age": 0}))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("age", pa.int8())])
    rows = pa.table([[1, 2], ["Ann", None], [7, 8]], schema=schema)
    assert redact_rows(told, rows).equals(pa.table([[1, 2], [None, None], [0, 0]], schema=schema))
    filled = pa.schema([("name", pa.string(), False), ("age", pa.int8())])
    with pytest.raises(InputError, match="'name' cannot be empty"):
        redact_rows(told, pa.table([["Ann"], [1]], schema=filled))
    wrong = Dataset(format="parquet", policy=Redact(replace={"age": "old"}))
    with pytest.raises(InputError, match="'age' is int8"):
        redact_rows(wrong, rows)
