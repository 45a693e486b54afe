"""Writes reduced graphs as `headwater reduce` does."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from provenance_store.model.account import Account

_SCHEMA = {"output": pl.String, "input": pl.String}


def write_reduced(
    folder: Path,
    run: str,
    edges: Iterable[tuple[str, str]],
    *,
    dic="dic",
    verdict="complete",
    generation=0,
    row_group_size=None,
    **account,
) -> Path:
    folder.mkdir(parents=True)
    rows = sorted(set(edges))
    frame = pl.DataFrame({"output": [e[0] for e in rows], "input": [e[1] for e in rows]}, schema_overrides=_SCHEMA)
    frame.write_parquet(folder / "graph.parquet", row_group_size=row_group_size)
    zeros = dict.fromkeys(("bytes", "edges_in", "edges_local", "duplicates", "discarded", "rejected"), 0)
    told = {"messages": 1, "missing": {}, "seconds": 0.5, "edges_out": len(rows), **zeros, **account}
    Account(run=run, dic=dic, verdict=verdict, generation=generation, **told).write(folder)
    return folder
