"""Rewritten inputs are read under the ids that their records always had."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from provenance_store.errors import JobError
from provenance_store.lake import layout
from provenance_store.reduction.exact import Reduced
from provenance_store.settings import Settings
from tests.integration.capture_dataframe.conftest import Capture
from tests.rewriting import rewrite_lines, rewrite_rows

WORDS = [b"a,1", b"b,2", b"", b"c,3", b"d,4"]


def test_rows_keep_their_ids(capture: Capture, reduced: Callable[[], Reduced], shop: Settings) -> None:
    version = layout.resolve(shop.lake, "orders")
    first, second = version.files()
    for gone in ({50, 51}, {0}, {99}):
        rewrite_rows(version, first, lambda row, gone=gone: row["order_id"] not in gone)  # type: ignore[misc]
    capture(lambda run: run.read("orders").filter("status != 'none'").write("out", key=["order_id"]))
    prefix = "lake:orders/v1"
    expected = {(f"lake:out/r1#{row}", f"{prefix}/{first.name}#{row}") for row in range(100)}
    expected -= {(f"lake:out/r1#{row}", f"{prefix}/{first.name}#{row}") for row in (0, 50, 51, 99)}
    expected |= {(f"lake:out/r1#{row + 100}", f"{prefix}/{second.name}#{row}") for row in range(100)}
    assert set(reduced().graph.iter_rows()) == expected


def test_rows_keep_their_ids_through_a_group(capture: Capture, reduced: Callable[[], Reduced], shop: Settings) -> None:
    version = layout.resolve(shop.lake, "orders")
    for file in version.files():
        rewrite_rows(version, file, lambda row: row["order_id"] % 3 != 0)
    capture(lambda run: run.read("orders").groupBy().count().write("out"))
    places = {record.rpartition("/")[2] for record in reduced().graph["input"]}
    assert places == {f"part-0000{row // 100}.parquet#{row % 100}" for row in range(200) if row % 3}


@pytest.mark.parametrize("name", ["words.txt", "words.csv", "words.csv.gz"])
def test_lines_keep_their_ids(capture: Capture, reduced: Callable[[], Reduced], shop: Settings, name: str) -> None:
    version = put_words(shop, name)
    rewrite_lines(version, version.files()[0], lambda line: {b"b,2": None, b"c,3": b"c,3333333"}.get(line, line))
    options: dict[str, Any] = {} if name.endswith("txt") else {"schema": "value string, number int"}
    capture(lambda run: run.read("words", **options).write("out", key=["value"]))
    # The empty line is a record of text, and none of CSV; before as after.
    empty = {("", 8)} if name.endswith("txt") else set()
    rest = {("c%2C3333333", 9), ("d%2C4", 13), ("a%2C1", 0)} if empty else {("c", 9), ("d", 13), ("a", 0)}
    assert set(reduced().graph.iter_rows()) == {
        (f"lake:out/r1#{key}", f"lake:words/v1/{name}#{place}") for key, place in empty | rest
    }


def test_a_file_changed_without_its_places_is_refused(capture: Capture, shop: Settings) -> None:
    version = put_words(shop, "words.txt")
    file = version.files()[0]
    rewrite_lines(version, file, lambda line: line * 2)
    file.write_bytes(b"\n".join(WORDS))
    with pytest.raises(JobError, match="changed without its places"):
        capture(lambda run: run.read("words").write("out"))


def put_words(shop: Settings, name: str) -> layout.Version:
    version = layout.version_of(shop.lake, "words", "v1")
    content = b"\n".join(WORDS) + b"\n"
    with layout.new_version(version, {}) as folder:
        (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    return version
