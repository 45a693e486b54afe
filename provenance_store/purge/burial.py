"""Burying what a purge removed: records of its plan that the lake has no more become tombstones of the lake graph."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.catalogue import Catalogue, Dataset
from provenance_store.lake.contents import existing
from provenance_store.lake.layout import Version, version_of
from provenance_store.purge.fingerprints import read_fingerprints
from provenance_store.purge.plan import StoredPlan
from provenance_store.settings import Settings

_BLOCK = 50_000


def bury(settings: Settings, graph: LakeGraph, stored: StoredPlan) -> int:
    """Make tombstones, with fingerprints where they were kept; how many. Done again, it changes nothing."""
    kept = read_fingerprints(stored).select("id", mark=pl.concat_str("secret", pl.lit(":"), "fingerprint"))
    count = 0
    for ids in removed(settings.lake, stored):
        marked = ids.to_frame("id").lazy().join(kept, on="id", how="left", maintain_order="left").collect()
        graph.bury(marked["id"].to_list(), stored.id, marked["mark"].to_list())
        count += len(ids)
    return count


def removed(lake: Path, stored: StoredPlan) -> Iterator[pl.Series]:
    """The ids of a plan's records under which nothing stands, in blocks: taken out, or made anew to nothing."""
    catalogue = Catalogue.load(lake)
    for step in stored.plan.steps:
        version = version_of(lake, step.dataset, step.version)
        for block in stored.records(step).iter_slices(_BLOCK):
            yield block.filter(~stands(version, catalogue.of(step.dataset), block))["id"]


def stands(version: Version, told: Dataset, rows: pl.DataFrame) -> pl.Series:
    """Of rows with file and position, whether a record of the version stands there."""
    there = [pl.DataFrame(schema={"file": pl.String, "position": pl.Int64})]
    for (file,), group in rows.group_by("file"):
        if (version.path / str(file)).is_file():
            found = existing(version, told, str(file), group["position"].to_numpy())
            there.append(pl.DataFrame({"file": str(file), "position": np.asarray(found, np.int64)}))
    known = pl.concat(there, how="vertical_relaxed").with_columns(stands=pl.lit(value=True))
    joined = rows.join(known, on=["file", "position"], how="left", maintain_order="left")
    return joined["stands"].fill_null(value=False)
