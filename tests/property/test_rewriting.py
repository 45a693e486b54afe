"""Files rewritten again and again, against a dictionary that remembers what stands under each id."""

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.lake import lines
from provenance_store.lake.catalogue import Dataset, Delete
from provenance_store.lake.contents import all_lines, all_rows, count_records, read_lines, read_rows
from provenance_store.lake.drafts import begin_draft, discard, switch
from provenance_store.lake.layout import Version, version_of
from provenance_store.lake.locating import all_keys, locate
from provenance_store.lake.records import lines_of
from provenance_store.lake.rewriting import LineEdit, RowEdit, rewrite
from provenance_store.lake.subsets import write_subset
from provenance_store.model.ids import RecordId, hash_key, key_text
from provenance_store.model.keys import KeyRing
from provenance_store.settings import Settings

TEXT = Dataset(format="text", policy=Delete())
PARQUET = Dataset(format="parquet", policy=Delete())
PACK = {"part-0.txt": bytes, "day=1/part-0.txt.gz": gzip.compress, "part-0.zst": zstandard.compress}
SCHEMA = pa.schema([("n", pa.int64()), ("words", pa.list_(pa.string())), pa.field("s", pa.string(), nullable=False)])

contents = st.binary(max_size=6).map(lambda line: line.replace(b"\n", b" "))
rows = st.fixed_dictionaries(
    {"n": st.none() | st.integers(0, 9), "words": st.none() | st.lists(st.text(max_size=2)), "s": st.text(max_size=3)}
)
fates = st.sampled_from(["keep", "keep", "change", "take out"])


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """So that lines reach over the ends of blocks; and no waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(lines, "_BLOCK", 7)
        patch.setattr(lines, "_CHUNK", 5)
        yield


def put(root: Path, file: str) -> tuple[Version, Path]:
    version = version_of(root, "words", "v1")
    path = version.path / file
    path.parent.mkdir(parents=True)
    return version, path


def edited(version: Version, file: str, edit: LineEdit | RowEdit, number: int) -> None:
    draft = begin_draft(version, f"p-{number}")
    rewrite(version, file, edit, draft)
    switch(version, draft)
    discard(draft)


@given(st.data(), st.sampled_from(list(PACK)))
def test_lines_stand_under_their_ids(data: st.DataObject, file: str) -> None:
    with TemporaryDirectory() as folder:
        version, path = put(Path(folder), file)
        first = data.draw(st.lists(contents, max_size=10))
        whole = b"".join(line + b"\n" for line in first)
        path.write_bytes(PACK[file](whole[:-1] if data.draw(st.booleans()) and first and first[-1] else whole))
        model = {sum(len(line) + 1 for line in first[:number]): line for number, line in enumerate(first)}
        ever = set(model)
        for number in range(data.draw(st.integers(0, 4))):
            fate = {record: data.draw(fates) for record in model}
            changed = {record: data.draw(contents) for record in model if fate[record] == "change"}
            removed = [record for record in model if fate[record] == "take out"]
            appended = data.draw(st.lists(contents, max_size=3))
            edited(version, file, LineEdit(data.draw(st.permutations(removed)), changed, appended), number)
            model = {record: line for record, line in {**model, **changed}.items() if record not in removed}

            now = lines_there(version, file)
            new = {record: line for record, line in now.items() if record not in model}
            assert all(record > max(ever, default=-1) for record in new)
            assert list(new.values()) == appended
            model.update(new)
            ever.update(new)
            assert now == model
            assert list(now) == sorted(now)
        assert lines_there(version, file) == model
        assert [int(record.rpartition("#")[2]) for record, _ in lines_of(version)] == list(model)
        assert count_records(version, TEXT) == len(model)
        asked = data.draw(st.permutations([*range(-1, max(ever, default=0) + 3)]))
        assert read_lines(version, file, asked) == [model.get(record) for record in asked]

        wanted = data.draw(st.sets(st.sampled_from(sorted(model)))) if model else set[int]()
        subset = write_subset(version, TEXT, {file: list(wanted)}, Path(folder) / "other")
        assert [str(one.relative_to(subset.path)) for one in subset.files()] == ([file] if wanted else [])
        if wanted:
            assert lines_there(subset, file) == {record: model[record] for record in sorted(wanted)}
            assert read_lines(subset, file, asked) == [model[one] if one in wanted else None for one in asked]


def lines_there(version: Version, file: str) -> dict[int, bytes]:
    return {
        position: line
        for positions, block in all_lines(version, file)
        for position, line in zip(positions.tolist(), block, strict=True)
    }


@given(st.data(), st.sampled_from(["snappy", "zstd", "none"]), st.booleans())
def test_rows_stand_under_their_ids(data: st.DataObject, compression: str, store_schema: bool) -> None:
    file = "part-0.parquet"
    with TemporaryDirectory() as folder:
        version, path = put(Path(folder), file)
        model = dict(enumerate(data.draw(st.lists(rows, max_size=10))))
        size = data.draw(st.integers(1, 4))
        made = pa.Table.from_pylist(list(model.values()), SCHEMA)
        pq.write_table(made, path, row_group_size=size, compression=compression, store_schema=store_schema)
        schema = pq.ParquetFile(path).schema
        ever = set(model)
        for number in range(data.draw(st.integers(0, 4))):
            fate = {record: data.draw(fates) for record in model}
            removed = [record for record in model if fate[record] == "take out"]
            changed = [record for record in model if fate[record] == "change"]
            new = data.draw(st.lists(rows, min_size=len(changed), max_size=len(changed) + 3))
            order = data.draw(st.permutations(range(len(new))))
            becomes = dict(zip(changed, order, strict=False))
            appended = [row for at, row in enumerate(new) if at not in becomes.values()]
            edited(version, file, RowEdit(removed, becomes, pa.Table.from_pylist(new, SCHEMA)), number)
            model.update({record: new[row] for record, row in becomes.items()})
            model = {record: row for record, row in model.items() if record not in removed}

            given_now = [record for record in rows_there(version, file) if record not in model]
            assert len(given_now) == len(appended)
            assert not set(given_now) & ever
            model.update(zip(given_now, appended, strict=True))
            ever.update(given_now)
            assert rows_there(version, file) == model
        assert pq.ParquetFile(path).schema.equals(schema)
        assert count_records(version, PARQUET) == len(model)
        asked = data.draw(st.lists(st.integers(-1, max(ever, default=0) + 3)))
        table, there = read_rows(version, file, asked, ["s", "n"])
        assert there.tolist() == sorted(model.keys() & set(asked))
        assert table.to_pylist() == [{"s": model[one]["s"], "n": model[one]["n"]} for one in there.tolist()]

        if model:
            wanted = data.draw(st.sets(st.sampled_from(sorted(model)), min_size=1))
            subset = write_subset(version, PARQUET, {file: list(wanted)}, Path(folder) / "other")
            assert rows_there(subset, file) == {record: model[record] for record in sorted(wanted)}


def rows_there(version: Version, file: str) -> dict[int, dict[str, Any]]:
    return {
        position: row
        for positions, batch in all_rows(version, file)
        for position, row in zip(positions.tolist(), batch.to_pylist(), strict=True)
    }


plain = st.text(max_size=4) | st.integers(-(10**30), 10**30) | st.booleans() | st.none()
DELIMITED = {"text": "\t", "csv": ","}


@given(st.data(), st.sampled_from(["jsonl", "csv", "text", "parquet"]))
def test_records_are_located_by_place_and_by_key(data: st.DataObject, kind: Any) -> None:
    with TemporaryDirectory() as folder:
        version, path = put(Path(folder), "part-0")
        columns, divided = ("b", "a", "x"), kind in DELIMITED
        told = Dataset(
            format=kind,
            policy=Delete(),
            key=("a", "b"),
            columns=columns if divided else (),
            separator=DELIMITED.get(kind) if divided else None,
        )
        plain_keys = st.tuples(texts(kind), texts(kind)) if kind != "jsonl" else st.tuples(plain, plain)
        drawn = data.draw(st.lists(plain_keys, max_size=8, unique_by=lambda key: tuple(map(cast, key))))
        records = [{"b": b, "a": a, "x": "1"} for a, b in drawn]
        write(path, kind, records)
        keys = {cast_all(record[name] for name in told.key): record for record in records}
        keyed = [key for key in keys if None not in key]
        positions = [position for _, found, _ in all_keys(version, told) for position in found.tolist()]
        assert [key for _, _, found in all_keys(version, told) for key in found] == [
            key if None not in key else None for key in keys
        ]

        ring = KeyRing(Settings(home=Path(folder) / "home"))
        secret = ring.of_version("words", "v1")
        ring.rotate()
        expected = {f"lake:words/v1/part-0#{position}": position for position in positions}
        for key, position in zip(keys, positions, strict=True):
            if key in keyed:
                expected[f"lake:words/v1#{key_text(*key)}"] = position
                expected[f"lake:words/v1#{hash_key(*key, secret=secret)}"] = position
        strangers = [
            f"lake:words/v1#{hash_key('nobody', 'x', secret=secret)}",
            str(RecordId("words", "v1", key=("nobody", "x"))),
            "lake:words/v1/part-0#99999",
            "lake:words/v1/part-1#0",
        ]
        found, missing = locate(version, told, [*expected, *strangers], ring)
        assert found == ({"part-0": expected} if expected else {})
        assert missing == sorted(strangers)


def texts(kind: str) -> st.SearchStrategy[str | None]:
    letters = st.characters(exclude_categories=["Cs"], exclude_characters='\n\t,"\\' if kind == "text" else "\n\r\\")
    longest = st.text(letters, min_size=1, max_size=4)
    return longest if kind in DELIMITED else longest | st.none()


def cast(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value).lower()


def cast_all(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(cast, values))


def write(path: Path, kind: str, records: list[dict[str, Any]]) -> None:
    if kind == "parquet":
        schema = pa.schema([(name, pa.string()) for name in ("b", "a", "x")])
        pq.write_table(pa.Table.from_pylist(records, schema), path, row_group_size=3)
        return
    if kind == "jsonl":
        written = [msgspec.json.encode(record) for record in records]
    else:
        fields = [[quoted(value, kind) for value in record.values()] for record in records]
        written = [DELIMITED[kind].join(values).encode() for values in fields]
    path.write_bytes(b"".join(line + b"\n" for line in written))


def quoted(value: str, kind: str) -> str:
    # As Spark writes CSV.
    return '"' + value.replace('"', '\\"') + '"' if kind == "csv" and set(value) & set(',"') else value
