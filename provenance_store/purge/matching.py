"""Which of the records made anew stands for which old one, so that ids go on.

Records are the same where their key is the same; without a key, where all of them is. What was there and is not made
any more vanishes; what is made and was not there is appended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.columns import columns_of
from provenance_store.lake.places import Positions

# Of two records with one key, the first is taken for the first: their place among equals.
_NTH = "nth"
_KEY = "key_"


@dataclass(frozen=True, slots=True)
class Found:
    """Records of one file, with the positions in their ids."""

    file: str
    positions: Positions
    records: Sequence[bytes] | pa.Table


@dataclass(frozen=True, slots=True)
class Matched:
    """Pairs of an old and a new record, by their rows in what was given."""

    # file, position of the old one; row of the new one, null where it vanished; differs: whether the content does.
    old: pl.DataFrame
    # Rows of new ones that no old one stands for.
    more: list[int]


def match(told: Dataset, old: Iterable[Found], new: Sequence[bytes] | pa.Table) -> Matched:
    """Find for every old record the new one."""
    before = pl.concat([_with_places(told, found) for found in old], how="vertical_relaxed")
    after = _records(told, new).with_row_index("row")
    names = [name for name in before.columns if name.startswith(_KEY)]
    before, after = _alike(before, after)
    joined = _numbered(before, names).join(
        _numbered(after, names), on=[*names, _NTH], how="left", nulls_equal=True, maintain_order="left"
    )
    contents = [name for name in before.columns if not name.startswith(_KEY) and name not in {"file", "position"}]
    differs = pl.col("row").is_not_null() & pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(f"{name}_right")) for name in contents
    )
    paired = joined.select("file", "position", "row", differs.alias("differs"))
    more = after.select("row").join(paired.select("row").drop_nulls(), on="row", how="anti")
    return Matched(paired, more["row"].sort().to_list())


def _with_places(told: Dataset, found: Found) -> pl.DataFrame:
    columns = {"file": [found.file] * len(found.positions), "position": found.positions}
    places = pl.DataFrame(columns, schema={"file": pl.String, "position": pl.Int64})
    return pl.concat([places, _records(told, found.records)], how="horizontal")


def _records(told: Dataset, records: Sequence[bytes] | pa.Table) -> pl.DataFrame:
    """The columns by which records are matched, and those that tell whether they differ."""
    if isinstance(records, pa.Table):
        rows = pl.DataFrame(pl.from_arrow(records))
        contents = rows.rename({name: f"in_{name}" for name in rows.columns})
    else:
        contents = pl.DataFrame({"in_line": records}, schema={"in_line": pl.Binary})
    keys = pl.DataFrame(pl.from_arrow(columns_of(told, records, only=told.key))) if told.key else contents
    return pl.concat([keys.rename({name: f"{_KEY}{name}" for name in keys.columns}), contents], how="horizontal")


def _alike(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """JSON tells types by what stands in the records: where the two differ, as texts."""
    odd = [name for name, kind in before.schema.items() if after.schema.get(name, kind) != kind]
    as_texts = [pl.col(name).cast(pl.String) for name in odd]
    return before.with_columns(as_texts), after.with_columns(as_texts)


def _numbered(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return frame.with_columns(pl.int_range(pl.len()).over(names).alias(_NTH))
