"""Records divided into columns and keys, as the catalogue tells."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Dataset, Delete
from provenance_store.lake.columns import columns_of, keys_of
from provenance_store.lake.contents import read_lines, read_rows
from provenance_store.lake.locating import locate
from provenance_store.lake.subsets import write_subset
from provenance_store.model.ids import hash_key
from provenance_store.model.keys import KeyRing
from provenance_store.settings import Settings


def told(kind: Any, key: Sequence[str] = (), **fields: Any) -> Dataset:
    return Dataset(format=kind, policy=Delete(), key=tuple(key), **fields)


CSV = told("csv", ["a"], columns=("a", "b"))
TABBED = told("text", ["a"], columns=("a", "b"), separator="\t")
JSON = told("jsonl", ["a"])


def test_json_has_the_columns_of_all_its_lines() -> None:
    lines = [b'{"a": 1, "b": "x"}', b"", b'{"c": [1], "b": null}', b'{"a": "y", "b": "z"}']
    assert columns_of(JSON, lines).to_pydict() == {
        "a": ["1", None, None, "y"],
        "b": ["x", None, None, "z"],
        "c": [None, None, [1], None],
    }
    assert columns_of(JSON, lines, ["b", "d"]).to_pydict() == {"b": ["x", None, None, "z"], "d": [None] * 4}
    assert columns_of(JSON, [b'{"a": 1}', b'{"a": 2.5}'])["a"].to_pylist() == [1.0, 2.5]
    assert columns_of(JSON, [b'{"a": 18446744073709551615}', b'{"a": true}'])["a"].to_pylist() == [
        "18446744073709551615", "true",
    ]  # fmt: skip


def test_csv_is_divided_as_spark_writes_it() -> None:
    lines = [b'1,"x, \\"y\\""\r', b",z", b'"",', b"  ", "é, ".encode(), rb"a\b,c"]
    assert columns_of(CSV, lines).to_pydict() == {
        "a": ["1", None, "", None, "é", "a\\b"],
        "b": ['x, "y"', "z", None, None, " ", "c"],
    }
    assert keys_of(CSV, lines) == [("1",), None, ("",), None, ("é",), ("a\\b",)]


def test_text_is_divided_or_left_whole() -> None:
    assert columns_of(TABBED, [b"a\t1", b'"\t\r']).to_pydict() == {"a": ["a", '"'], "b": ["1", "\r"]}
    assert columns_of(told("text"), [b"a\t1", b"", b"\xff\r"]).to_pydict() == {"value": ["a\t1", "", "\ufffd\r"]}


@pytest.mark.parametrize(("dataset", "line"), [(JSON, b"[1]"), (JSON, b"{"), (CSV, b"1,2,3"), (TABBED, b"1")])
def test_a_line_of_another_format_has_no_columns_and_no_key(dataset: Dataset, line: bytes) -> None:
    with pytest.raises(InputError, match="Line 1 of 1 cannot be divided into its columns"):
        columns_of(dataset, [line])
    assert keys_of(dataset, [line]) == [None]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(InputError, match="There is no column 'c'; there are a, b"):
        columns_of(CSV, [b"1,2"], ["c"])
    with pytest.raises(InputError, match="There is no column 'c'; there are a"):
        columns_of(told("parquet"), pa.table({"a": [1]}), ["c"])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, -2, None]), ["1", "-2", None]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([date(2026, 1, 2)]), ["2026-01-02"]),
        (pa.array([Decimal("0.0000001"), Decimal("12.5000000")]), ["0.0000001", "12.5000000"]),
        (pa.array(["x", "", None]).dictionary_encode(), ["x", "", None]),
    ],
)
def test_keys_are_texts_as_spark_casts_them(values: pa.Array, texts: list[str | None]) -> None:
    found = keys_of(told("parquet", ["a"]), pa.table({"a": values, "b": values}))
    assert found == [None if text is None else (text,) for text in texts]


@pytest.mark.parametrize("value", [1.5, datetime(2026, 1, 2), [1], b"x"])  # noqa: DTZ001 - refused anyhow
def test_keys_without_one_text_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="Column 'a' is part of a key and of type"):
        keys_of(told("parquet", ["a"]), pa.table({"a": [value]}))


def test_json_keys() -> None:
    lines = [b'{"a": "x"}', b'{"a": 12}', b'{"a": true}', b'{"a": null}', b"{}", b" "]
    assert keys_of(JSON, lines) == [("x",), ("12",), ("true",), None, None, None]
    with pytest.raises(InputError, match="Column 'a' is part of a key and of type float"):
        keys_of(JSON, [b'{"a": 1.0}'])
    with pytest.raises(InputError, match="tells no key of this dataset"):
        keys_of(told("jsonl"), lines)


# --- where ids lead


@pytest.fixture
def version(tmp_path: Path) -> layout.Version:
    version = layout.version_of(tmp_path, "people", "v1")
    with layout.new_version(version, {}) as folder:
        (folder / "a.jsonl").write_bytes(b'{"a": "x"}\n{"a": "y"}\n')
        (folder / "b.jsonl").write_bytes(b'{"a": "x"}\n')
    return version


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(Settings(home=tmp_path / "home"))


def test_hidden_files_hold_no_records(version: layout.Version, ring: KeyRing) -> None:
    asked = ["lake:people/v1/_headwater.json#0", "lake:people/v1/a.jsonl#0", "lake:people/v1/a.jsonl#1"]
    assert locate(version, JSON, asked, ring) == ({"a.jsonl": {asked[1]: 0}}, [asked[0], asked[2]])


def test_a_key_of_two_records_is_refused(version: layout.Version, ring: KeyRing) -> None:
    with pytest.raises(InputError, match="Two records of people/v1 stand under lake:people/v1#x"):
        locate(version, JSON, ["lake:people/v1#x"], ring)


def test_an_id_of_another_version_is_refused(version: layout.Version, ring: KeyRing) -> None:
    with pytest.raises(InputError, match="lake:people/v2#x is not of people/v1"):
        locate(version, JSON, ["lake:people/v2#x"], ring)


def test_keys_under_a_secret_that_was_destroyed_are_not_said_to_be_missing(
    version: layout.Version, ring: KeyRing
) -> None:
    record = f"lake:people/v1#{hash_key('y', secret=ring.of_version('people', 'v1'))}"
    known = ring.read().versions["lake:people/v1"]
    assert locate(version, JSON, [record], ring) == ({"a.jsonl": {record: 11}}, [])
    ring.rotate()
    assert locate(version, JSON, [record], ring) == ({"a.jsonl": {record: 11}}, [])
    ring.destroy(known)
    with pytest.raises(InputError, match="was destroyed"):
        locate(version, JSON, [record], ring)


def test_what_is_not_there_cannot_be_asked_for(version: layout.Version, tmp_path: Path) -> None:
    for wanted in ({"a.jsonl": [0, 1]}, {"a.jsonl": [22]}, {"c.jsonl": [0]}):
        with pytest.raises(InputError, match=r"is not there|has no file 'c.jsonl'"):
            write_subset(version, JSON, wanted, tmp_path / "other")
    assert list(tmp_path.glob("other/people/*")) == []
    assert list(tmp_path.glob("other/people/.*")) == []
    with pytest.raises(InputError, match=r"has no file 'c\.jsonl'"):
        read_lines(version, "c.jsonl", [0])
    pq.write_table(pa.table({"a": [1]}), version.path / "c.parquet")
    with pytest.raises(InputError, match=r"c\.parquet has no column 'b'; it has a"):
        read_rows(version, "c.parquet", [0], ["b"])
    with pytest.raises(InputError, match="is not there"):
        write_subset(version, told("parquet"), {"c.parquet": [1]}, tmp_path / "other")


def test_a_subset_has_the_marker_of_its_version(version: layout.Version, tmp_path: Path) -> None:
    subset = write_subset(version, JSON, {"a.jsonl": [11], "b.jsonl": []}, tmp_path / "other")
    assert subset == layout.version_of(tmp_path / "other", "people", "v1")
    assert subset.marker() == version.marker()
    assert [file.name for file in subset.files()] == ["a.jsonl"]
    with pytest.raises(InputError, match="is already in"):
        write_subset(version, JSON, {}, tmp_path / "other")
