from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from provenance_store.lake.catalogue import Dataset, Recompute
from provenance_store.purge.matching import Found, Matched, match

COUNTS = Dataset(format="text", columns=("tag", "count"), separator="\t", key=("tag",), policy=Recompute())
LINES = Dataset(format="text", policy=Recompute())
ROWS = Dataset(format="parquet", key=("country", "place"), policy=Recompute())


def old(file: str, records: Sequence[bytes] | pa.Table) -> Found:
    return Found(file, np.arange(len(records), dtype=np.int64) * 10, records)


def pairs(matched: Matched) -> list[tuple[str, int, int | None, bool]]:
    return matched.old.rows()


def test_by_key() -> None:
    matched = match(COUNTS, [old("a", [b"x\t1", b"y\t2"]), old("b", [b"z\t3"])], [b"z\t3", b"w\t9", b"x\t4"])
    assert pairs(matched) == [("a", 0, 2, True), ("a", 10, None, False), ("b", 0, 0, False)]
    assert matched.more == [1]


def test_without_a_key_equals_stand_for_each_other_as_often_as_they_are() -> None:
    matched = match(LINES, [old("a", [b"x", b"x", b"y", b"x"])], [b"y", b"x", b"z", b"x"])
    assert pairs(matched) == [("a", 0, 1, False), ("a", 10, 3, False), ("a", 20, 0, False), ("a", 30, None, False)]
    assert matched.more == [2]


def test_rows_whose_key_is_null_are_records_like_others() -> None:
    columns = {"country": pa.array([None, "DE", "DE"]), "place": [1, 1, 2], "cents": pa.array([5, None, 7])}
    after = {"country": pa.array(["DE", None]), "place": [1, 1], "cents": pa.array([None, 6], pa.int64())}
    matched = match(ROWS, [old("a", pa.table(columns))], pa.table(after))
    assert pairs(matched) == [("a", 0, 1, True), ("a", 10, 0, False), ("a", 20, None, False)]
    assert matched.more == []


def test_nothing_left_or_nothing_there() -> None:
    assert pairs(match(COUNTS, [old("a", [b"x\t1"])], [])) == [("a", 0, None, False)]
    assert match(COUNTS, [old("a", [])], [b"x\t1"]).more == [0]
    # Whoever joins with it finds texts and numbers, even where there are none.
    empty = match(COUNTS, [old("a", [])], []).old
    assert dict(empty.select("file", "position").schema) == {"file": pl.String, "position": pl.Int64}
