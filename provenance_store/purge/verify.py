"""Verification: whether the lake is what a purge says it left, by reading the lake again.

It goes by the plan and by what was counted, and calls nothing that changed the lake. What was made anew is compared
with what other code computes from the sources: the entry points `headwater.checks`, one for each DIC. It can be asked
for again at any later time; what purges that came after did to the same versions is taken into account.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue, Dataset, Redact, Value
from provenance_store.lake.columns import columns_of
from provenance_store.lake.contents import all_lines, all_rows, count_records, read_lines, read_rows
from provenance_store.lake.layout import Version, version_of
from provenance_store.model.keys import KeyRing, fingerprint
from provenance_store.purge import certificate
from provenance_store.purge.burial import removed, stands
from provenance_store.purge.done import StepDone
from provenance_store.purge.expectations import check_suite
from provenance_store.purge.findings import Finding
from provenance_store.purge.fingerprints import deleted_of, read_fingerprints, scan
from provenance_store.purge.plan import Step, StoredPlan
from provenance_store.purge.stream_checks import check_stream
from provenance_store.purge.stream_steps import of_run
from provenance_store.settings import Settings
from provenance_store.streams.checkpoints import is_kept

CHECKS = "headwater.checks"
Check: TypeAlias = Callable[[Sequence[Version], Version], pl.DataFrame]
_BLOCK = 50_000
_SIGN = "expected or there"


def verify(settings: Settings, graph: LakeGraph, stored: StoredPlan, done: Sequence[StepDone]) -> list[Finding]:
    """All that can be found out about a purge that was applied."""
    return list(_Verification(settings, graph, stored, done).findings())


class _Verification:
    def __init__(self, settings: Settings, graph: LakeGraph, stored: StoredPlan, done: Sequence[StepDone]) -> None:
        self._settings = settings
        self._graph = graph
        self._stored = stored
        self._steps = stored.plan.steps
        self._catalogue = Catalogue.load(settings.lake)
        self._history = _History(settings.lake, stored, done)

    def findings(self) -> Iterator[Finding]:
        """In the order in which a reader asks."""
        yield self._are_gone("selected", "selected", pl.col("selected"))
        yield self._are_gone("reached", "made from them", ~pl.col("selected"))
        yield self._are_not_back()
        yield self._are_redacted()
        yield self._are_counted()
        yield from (self._are_recomputed(step) for step in self._steps if step.policy == "recompute" and not step.lanes)
        yield from self._are_streams_remade()
        yield from self._meet_expectations()
        yield from self._are_forgotten()
        yield self._are_buried()

    def _are_gone(self, name: str, which: str, chosen: pl.Expr) -> Finding:
        """Nothing stands under the ids of what had to go."""
        counts = Counter(records=0, standing=0)
        for step in self._steps:
            version, told = self._open(step)
            for block in deleted_of(self._stored, step).filter(chosen).iter_slices(_BLOCK):
                counts["records"] += block.height
                counts["standing"] += int(stands(version, told, block).sum())
        return _finding(
            f"{name} records are gone",
            not counts["standing"],
            counts,
            f"Of {counts['records']:,} records that were {which} and had to go, {counts['standing']:,} stand in the "
            "lake under their ids.",
        )

    def _are_not_back(self) -> Finding:
        """No version of their datasets has a record that equals one of them."""
        name = "nothing equal to them is found"
        kept = read_fingerprints(self._stored).collect()
        secrets = {fingerprint(secret): secret for secret in KeyRing(self._settings).read().secrets}
        lost = sorted(set(kept["secret"]) - secrets.keys())
        counts = Counter(purged=kept.height, records=0, versions=0, found=0)
        if lost:
            why = f"The key {', '.join(lost)} was destroyed, and with it what they could be known by."
            return _finding(name, None, counts, why)
        found: list[str] = []
        for dataset in kept["dataset"].unique().sort():
            for version in layout.list_versions(self._settings.lake, dataset):
                records, equal = self._look_for(version, kept.filter(pl.col("dataset") == dataset), secrets)
                counts.update(records=records, versions=1, found=equal)
                found += [version.reference] if equal else []
        where = f": in {', '.join(found)}" if found else ""
        return _finding(
            name,
            not found,
            counts,
            f"Of {counts['records']:,} records in all {counts['versions']:,} versions of the datasets, "
            f"{counts['found']:,} equal one of {counts['purged']:,} that were taken out, by key or by content{where}.",
        )

    def _look_for(self, version: Version, kept: pl.DataFrame, secrets: Mapping[str, bytes]) -> tuple[int, int]:
        """How many records the version has, and how many of them are like those that were purged."""
        told = self._catalogue.of(version.dataset)
        records = equal = 0
        for (columns, name), known in kept.group_by("key", "secret"):
            by = msgspec.structs.replace(told, key=tuple(filter(None, str(columns).split(","))))
            records = 0
            for _, _, hashes in scan(version, by, secrets[str(name)]):
                records += len(hashes)
                equal += int(pl.Series(hashes, dtype=pl.String).is_in(known["fingerprint"].implode()).sum())
        return records, equal

    def _are_redacted(self) -> Finding:
        """Fields that had to be emptied or replaced are."""
        counts = Counter(records=0, gone=0, unlike=0)
        changed: list[str] = []
        for step in self._steps:
            if step.policy != "redact":
                continue
            version, told = self._open(step)
            records = self._stored.records(step)
            counts["records"] += records.height
            if not isinstance(told.policy, Redact):
                changed.append(step.dataset)
                continue
            for rows in records.partition_by("file"):
                for block in rows.iter_slices(_BLOCK):
                    there, unlike = _count_unlike(version, told, block, told.policy.fields)
                    counts.update(gone=block.height - there, unlike=unlike)
        gone = f" {counts['gone']:,} are no longer in the lake." if counts["gone"] else ""
        if changed:
            gone += f" The catalogue has another policy by now for {', '.join(sorted(set(changed)))}."
        return _finding(
            "fields are redacted",
            False if counts["unlike"] else None if changed else True,
            counts,
            f"Of {counts['records']:,} records with fields to redact, {counts['unlike']:,} have one that is not as "
            f"the catalogue tells.{gone}",
        )

    def _are_counted(self) -> Finding:
        """No record came or went but those that were told."""
        counts = Counter(versions=0, expected=0, records=0)
        wrong: list[str] = []
        unknown: list[str] = []
        for step in self._steps:
            version, told = self._open(step)
            grown = self._history.grown(version)
            if grown is None:
                unknown.append(step.reference)
                continue
            expected, there = step.records + grown, count_records(version, told)
            counts.update(versions=1, expected=expected, records=there)
            wrong += [f"{step.reference} has {there:,} instead of {expected:,}"] if there != expected else []
        faults = f" {'; '.join(wrong)}." if wrong else ""
        if unknown:
            faults += f" Not counted, as they are gone or another purge of them goes on: {', '.join(unknown)}."
        return _finding(
            "no other record came or went",
            False if wrong else None if unknown else True,
            counts,
            f"{counts['versions']:,} versions have {counts['records']:,} records, and should have "
            f"{counts['expected']:,}.{faults}",
        )

    def _are_recomputed(self, step: Step) -> Finding:
        """What was made anew is what other code computes from the sources."""
        name = f"{step.reference} is what its inputs give"
        version, told = self._open(step)
        inputs = [version_of(self._settings.lake, *one.split("/", 1)) for one in step.inputs]
        missing = [one.reference for one in (version, *inputs) if not one.exists()]
        if missing:
            return _finding(name, None, {}, f"Not checked: {', '.join(missing)} is no longer in the lake.")
        check = _find_check(step.dic)
        if check is None:
            why = f"Not checked: nothing under the entry points {CHECKS} computes what {step.dic} should write."
            return _finding(name, None, {}, why)
        there = _read(version, told)
        try:
            unexpected, lacking = _compare(check(inputs, version), there)
        except Exception as error:  # whatever goes wrong in code of others, the purge has its certificate
            return _finding(name, None, {}, f"Not checked: what computes it failed with {type(error).__name__}.")
        allowed = self._history.deleted(version)
        counts = {"records": there.height, "unexpected": unexpected, "missing": lacking, "deleted": allowed}
        deleted = f", {allowed:,} of which purges deleted" if allowed else ""
        return _finding(
            name,
            not unexpected and lacking <= allowed,
            counts,
            f"Of its {counts['records']:,} records, {unexpected:,} are not what other code computes from its inputs, "
            f"and {lacking:,} are missing{deleted}.",
        )

    def _are_streams_remade(self) -> Iterator[Finding]:
        """Results of streams that were made anew are what the reference makes."""
        for steps in of_run(self._steps):
            versions = [self._open(step)[0] for step in steps]
            missing = [one for step in steps for one in (step.reference, *step.inputs) if not self._is_there(one)]
            if missing:
                name = f"{', '.join(step.reference for step in steps)} is what its inputs give"
                yield _finding(name, None, {}, f"Not checked: {', '.join(sorted(set(missing)))} is not in the lake.")
                continue
            deleted = sum(map(self._history.deleted, versions))
            inputs = [version_of(self._settings.lake, *one.split("/", 1)) for step in steps for one in step.inputs]
            is_last = all(self._history.is_last(version) for version in [*versions, *inputs])
            yield check_stream(self._settings.lake, steps, deleted=deleted, is_last=is_last)

    def _is_there(self, reference: str) -> bool:
        return version_of(self._settings.lake, *reference.split("/", 1)).exists()

    def _are_forgotten(self) -> Iterator[Finding]:
        """Nothing is kept of the events of streams that took in touched records, but what is in the lake."""
        if runs := self._stored.plan.forgets:
            kept = [run for run in runs if is_kept(self._settings.home, run)]
            where = f": of {', '.join(kept)}" if kept else ""
            yield _finding(
                "checkpoints and caches of streams are gone",
                not kept,
                {"runs": len(runs), "kept": len(kept)},
                f"Of {len(runs):,} stream runs that took in touched records, {len(kept):,} have checkpoints or cached "
                f"events on this machine{where}.",
            )

    def _meet_expectations(self) -> Iterator[Finding]:
        for step in self._steps:
            version, told = self._open(step)
            if told.suite is None or not version.exists():
                continue
            name = f"{step.reference} meets its expectations"
            try:
                checked = check_suite(self._settings.lake / told.suite, version, told)
            except InputError as error:
                yield _finding(name, None, {}, f"Not checked: {error}")
                continue
            yield _finding(
                name,
                not checked.failed,
                {"expectations": checked.expectations, "failed": len(checked.failed)},
                f"Of {checked.expectations:,} expectations in {told.suite}, {len(checked.failed):,} are not met"
                + (f": {'; '.join(checked.failed)}." if checked.failed else "."),
            )

    def _are_buried(self) -> Finding:
        """What is gone from the lake is a tombstone of the lake graph, and tells nothing."""
        counts = Counter(removed=0, tombstones=0, bare=0)
        for ids in removed(self._settings.lake, self._stored):
            stones = self._graph.buried(ids.to_list())
            counts.update(removed=len(ids), tombstones=len(stones), bare=sum(stone.is_bare for stone in stones))
        return _finding(
            "removed records are tombstones",
            counts["removed"] == counts["tombstones"] == counts["bare"],
            counts,
            f"Of {counts['removed']:,} records that are no longer in the lake, {counts['tombstones']:,} are "
            f"tombstones in the lake graph, {counts['bare']:,} of which hold nothing else.",
        )

    def _open(self, step: Step) -> tuple[Version, Dataset]:
        return version_of(self._settings.lake, step.dataset, step.version), self._catalogue.of(step.dataset)


class _History:
    """What this purge did to versions, and those that came after it, as their certificates tell."""

    def __init__(self, lake: Path, stored: StoredPlan, done: Sequence[StepDone]) -> None:
        self._purge = stored.id
        certificates = list(certificate.read_all(lake))
        self._numbers: dict[str, float] = {known.plan: known.number for known in certificates}
        certified = ((known.plan, one) for known in certificates for one in known.done)
        self._done = {(purge, one.dataset, one.version): one for purge, one in certified}
        self._done |= {(stored.id, one.dataset, one.version): one for one in done}

    def grown(self, version: Version) -> int | None:
        """By how many records the version grew since before this purge; None where that cannot be known."""
        purges = version.marker().get("purged", []) if version.exists() else []
        if self._purge not in purges:
            return None
        found = [self._of(purge, version) for purge in purges[purges.index(self._purge) :]]
        return sum(one.grown for one in found if one is not None) if None not in found else None

    def is_last(self, version: Version) -> bool:
        """Whether no purge changed the version after this one."""
        ours = self._numbers.get(self._purge, math.inf)
        others = [purge for purge in version.marker().get("purged", []) if purge != self._purge]
        return all(self._numbers.get(purge, math.inf) <= ours for purge in others)

    def deleted(self, version: Version) -> int:
        """How many records of the version purges took out, other than by making them anew."""
        purges = [*version.marker().get("purged", []), self._purge]
        return sum(one.deleted for purge in dict.fromkeys(purges) if (one := self._of(purge, version)))

    def _of(self, purge: str, version: Version) -> StepDone | None:
        return self._done.get((purge, version.dataset, version.name))


def _finding(name: str, passed: bool | None, counts: Mapping[str, int], sentence: str) -> Finding:
    return Finding(
        name=name, passed=passed, counts={key: int(value) for key, value in counts.items()}, sentence=sentence
    )


def _find_check(dic: str | None) -> Check | None:
    found = entry_points(group=CHECKS, name=dic or "")
    return next((one.load() for one in found), None)


def _read(version: Version, told: Dataset) -> pl.DataFrame:
    """All records of a version, in columns of texts."""
    parts = []
    for path in version.files():
        file = version.name_of(path)
        blocks: Iterator[tuple[Any, Any]] = (
            all_rows(version, file) if told.format == "parquet" else all_lines(version, file)
        )
        for _, records in blocks:
            there = records if told.format == "parquet" else [line for line in records if line]
            table = columns_of(told, there)
            parts.append(pl.DataFrame(pl.from_arrow(table)).with_columns(pl.all().cast(pl.String)))
    return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()


def _compare(expected: pl.DataFrame, there: pl.DataFrame) -> tuple[int, int]:
    """How many records are there that are not expected, and how many are expected that are not there."""
    signed = [
        frame.select(pl.all().cast(pl.String), pl.lit(sign).alias(_SIGN))
        for frame, sign in ((expected, -1), (there, 1))
        if frame.height  # a frame without columns would get a row by the sign
    ]
    if not signed:
        return 0, 0
    surplus = pl.concat(signed, how="diagonal").group_by(pl.exclude(_SIGN)).agg(pl.col(_SIGN).sum())[_SIGN]
    return int(surplus.clip(0).sum()), int((-surplus).clip(0).sum())


def _count_unlike(
    version: Version, told: Dataset, rows: pl.DataFrame, fields: Mapping[str, Value | None]
) -> tuple[int, int]:
    """How many of the records of one file are there, and how many have a field that is not as told."""
    file, positions = rows["file"][0], rows["position"].to_numpy()
    if not (version.path / file).is_file():
        return 0, 0
    if told.format == "parquet":
        table, _ = read_rows(version, file, positions, list(fields))
    else:
        lines = [line for line in read_lines(version, file, positions) if line is not None]
        # A blank line has no fields, and nothing to redact.
        table = columns_of(told, [line for line in lines if line.strip()], list(fields))
    unlike = pa.array([False] * table.num_rows, pa.bool_())
    for name, value in fields.items():
        unlike = pc.or_(unlike, _differs(table[name].combine_chunks(), value))
    return table.num_rows, pc.sum(unlike).as_py() or 0


def _differs(column: pa.Array, value: Value | None) -> pa.Array:
    """Where a column holds something else than it should. Null is nothing: a record of JSON may lack the field."""
    is_text = pa.types.is_string(column.type)
    if value is None:
        # An empty text is how lines write null.
        unlike = pc.not_equal(column, "") if is_text else pc.is_valid(column)
    else:
        if is_text and not isinstance(value, str):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            unlike = pc.not_equal(column, pa.scalar(value).cast(column.type))
        except pa.ArrowException:  # of a type that what should be there cannot have
            unlike = pc.is_valid(column)
    return pc.fill_null(unlike, fill_value=False)
