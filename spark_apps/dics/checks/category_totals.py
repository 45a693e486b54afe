"""How often the hashtags of each category occur: the sum of their counts, of all hashtags that the table names."""

from collections.abc import Sequence

import polars as pl

from provenance_store.lake.layout import Version
from spark_apps.dics.checks.reading import blocks_of_lines, read_json


def expect(inputs: Sequence[Version], _: Version) -> pl.DataFrame:
    """All totals that the version should hold, from the counts and the table."""
    counts, table = inputs
    joined = _counts(counts).join(_categories(table), on="hashtag")
    return joined.group_by("category").agg(total=pl.col("count").sum())


def _counts(version: Version) -> pl.DataFrame:
    parts = [line.decode("utf-8").rsplit("\t", 1) for lines in blocks_of_lines(version) for line in lines]
    frame = pl.DataFrame(parts, schema={"hashtag": pl.String, "count": pl.String}, orient="row")
    return frame.with_columns(pl.col("count").cast(pl.Int64))


def _categories(version: Version) -> pl.DataFrame:
    rows = [read_json(line) or {} for lines in blocks_of_lines(version) for line in lines]
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in ("hashtag", "category")},
        schema={"hashtag": pl.String, "category": pl.String},
    )
