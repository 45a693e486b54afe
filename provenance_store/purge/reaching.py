"""What a selection reaches: the forward trace over the lake graph, and where all of it stands in the lake."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from provenance_store.errors import InputError
from provenance_store.graph.answer import CrossedRun
from provenance_store.graph.consequences import Consequences
from provenance_store.lake.catalogue import Recompute
from provenance_store.lake.contents import all_lines, all_rows
from provenance_store.lake.layout import Version
from provenance_store.model.ids import version_prefix
from provenance_store.purge.standing import PLACE, STANDING, Lake, Standing


class Graph(Protocol):
    """What has to be known of the lake graph; `LakeGraph` does."""

    def consequences(self, ids: Sequence[str], *, selection: str) -> Consequences:
        """All that was made from the records."""

    def prefixes(self, prefixes: Iterable[str]) -> set[str]:
        """Those of the prefixes that an id of a record begins with."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a purge touches: selected records, and all that was made from them."""

    # Each record once: where it stands, under the first id that it was met by, and whether it was selected.
    rows: pl.DataFrame
    # Every id by which the lake graph may know these records, and where they stand.
    names: pl.DataFrame
    # Versions that jobs which were only declared made from touched ones: any record of theirs may be touched.
    declared: list[Version]
    # Of each version that is there, how many records the lake graph knows that it no longer has.
    absent: dict[str, int]
    # Versions that the lake no longer has.
    gone: list[str]
    # Ids that name no record of a version.
    foreign: list[str]
    runs: list[CrossedRun]


def reach(lake: Lake, graph: Graph, selected: pl.Series, *, selection: str) -> Reached:
    """Follow what was made from the selected records to its end."""
    begin = lake.stand(selected, exactly=True)
    if lacking := [*begin.missing["id"], *begin.gone["id"]]:
        raise InputError(
            f"{len(lacking):,} of the {len(selected):,} selected records are no longer in the lake, {min(lacking)} for "
            "one: select anew."
        )
    names, found = [begin.rows], [begin]
    runs: set[CrossedRun] = set()
    seen = begin.rows["id"]
    frontier = _other_names(lake, graph, begin.rows)
    names.append(frontier)
    asked = pl.concat([seen, frontier["id"]]).unique(maintain_order=True)
    while len(asked):
        seen = pl.concat([seen, asked]).unique()
        consequences = graph.consequences(asked.to_list(), selection=selection)
        runs.update(consequences.runs)
        new = _without(pl.Series("id", consequences.ids, pl.String), seen)
        seen = pl.concat([seen, new])
        standing = lake.stand(new)
        others = _other_names(lake, graph, standing.rows)
        names += [standing.rows, others]
        found.append(standing)
        asked = _without(others["id"], seen)
    return _gather(lake, begin, names, found, sorted(runs))


def _other_names(lake: Lake, graph: Graph, rows: pl.DataFrame) -> pl.DataFrame:
    """The same records under the ids of the other form, where the lake graph knows any of that form."""
    groups = rows.partition_by("dataset", "version", maintain_order=True)
    prefixes = {place: version_prefix(*group.row(0)[1:3]) for place, group in enumerate(groups)}
    known = graph.prefixes(f"{prefix}{end}" for prefix in prefixes.values() for end in "/#") if groups else set()
    parts = [pl.DataFrame(schema=STANDING)]
    for place, group in enumerate(groups):
        by_key = group["id"].str.starts_with(prefixes[place] + "#")
        if f"{prefixes[place]}/" in known and by_key.any():
            parts.append(lake.positional_ids(group.filter(by_key)))
        if f"{prefixes[place]}#" in known and not by_key.all():
            parts.append(lake.key_ids(group.filter(~by_key)))
    return pl.concat(parts)


def _gather(
    lake: Lake, begin: Standing, names: list[pl.DataFrame], found: list[Standing], runs: list[CrossedRun]
) -> Reached:
    declared = {version.reference: version for standing in found for version in standing.whole}
    whole = [_all_records(lake, version) for _, version in sorted(declared.items())]
    named = pl.concat([*names, *whole])
    selected = begin.rows.select(PLACE).unique().with_columns(selected=pl.lit(value=True))
    rows = named.unique(PLACE, keep="first", maintain_order=True).join(selected, on=PLACE, how="left")
    absent: Counter[str] = Counter()
    for standing in found:
        absent.update(f"{dataset}/{version}" for _, dataset, version in standing.missing.iter_rows())
    gone = {f"{dataset}/{version}" for one in found for _, dataset, version in one.gone.iter_rows()}
    return Reached(
        rows=rows.with_columns(pl.col("selected").fill_null(value=False)),
        names=named.unique("id", keep="first", maintain_order=True),
        declared=list(declared.values()),
        absent=dict(absent),
        gone=sorted(gone),
        foreign=sorted(one for standing in found for one in standing.foreign),
        runs=runs,
    )


def _all_records(lake: Lake, version: Version) -> pl.DataFrame:
    """Every record of a version, but of one that is made anew as a whole whatever its records are."""
    told = lake.catalogue.of(version.dataset)
    parts = [pl.DataFrame(schema=STANDING)]
    if isinstance(told.policy, Recompute):
        return parts[0]
    for path in version.files():
        file = version.name_of(path)
        blocks = all_rows(version, file, told.key or None) if told.format == "parquet" else all_lines(version, file)
        for positions, _ in blocks:
            rows = pl.DataFrame({"position": positions}).select(
                id=pl.lit(""),
                dataset=pl.lit(version.dataset),
                version=pl.lit(version.name),
                file=pl.lit(file),
                position=pl.col("position"),
            )
            parts.append(lake.positional_ids(rows))
    return pl.concat(parts)


def _without(ids: pl.Series, others: pl.Series) -> pl.Series:
    return ids.alias("id").to_frame().unique(maintain_order=True).join(others.to_frame(), on="id", how="anti")["id"]
