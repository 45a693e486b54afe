"""What a step does to the files of its version: records taken out, changed and appended, file by file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.contents import all_lines, all_rows, read_lines, read_rows, schema_of
from provenance_store.lake.layout import Version
from provenance_store.lake.places import Positions
from provenance_store.lake.rewriting import LineEdit, RowEdit
from provenance_store.purge.done import StepDone
from provenance_store.purge.matching import Found, Matched, match
from provenance_store.purge.plan import Step
from provenance_store.purge.redaction import redact_lines, redact_rows
from provenance_store.purge.subtraction import take_away

Edit = LineEdit | RowEdit


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of a version's files, and what they come to."""

    done: StepDone
    by_file: dict[str, Edit] = field(default_factory=dict)
    # Where new records are appended, and which rows of those made anew they are.
    appended_to: str | None = None
    appended: Sequence[int] = ()
    matched: Matched | None = None
    # Files that are new, by name, with their lines.
    new: Mapping[str, Sequence[bytes]] = field(default_factory=dict)


def delete(step: Step, told: Dataset, records: pl.DataFrame) -> Edits:
    """Take the records out."""
    removed = {file: _edit(told, removed=positions) for file, positions in _by_file(records)}
    return Edits(StepDone(dataset=step.dataset, version=step.version, deleted=len(records)), removed)


def redact(step: Step, told: Dataset, records: pl.DataFrame, version: Version) -> Edits:
    """Empty fields of the records."""
    edits: dict[str, Edit] = {}
    for file, positions in _by_file(records):
        found = _find(version, told, file, positions)
        if isinstance(found.records, pa.Table):
            rows = redact_rows(told, found.records)
            edits[file] = RowEdit(changed=dict(zip(found.positions.tolist(), range(len(rows)), strict=True)), rows=rows)
        else:
            lines = redact_lines(told, found.records)
            edits[file] = LineEdit(changed=dict(zip(found.positions.tolist(), lines, strict=True)))
    return Edits(StepDone(dataset=step.dataset, version=step.version, redacted=len(records)), edits)


def recompute(step: Step, told: Dataset, records: pl.DataFrame, version: Version, remade: Version | None) -> Edits:
    """Put what was made anew in the place of what it stands for; `remade` is None where nothing was left to read.

    Of a step that is not whole, only the records that it names are looked at: others that were made anew were made
    from a part of their inputs. Of one that subtracts, `remade` is what is to be taken away.
    """
    new = _all_of(remade, told) if remade is not None else _nothing(version, told)
    selected, reached = records.filter("selected"), records.filter(~pl.col("selected"))
    out = dict(_by_file(selected))
    if step.whole:
        old = [found for file in _files(version) for found in _everything(version, told, file)]
    else:
        old = [_find(version, told, file, positions) for file, positions in _by_file(reached)]
    if step.subtracts and not isinstance(new, pa.Table):
        new = take_away(told, old, new)
    matched = match(told, old or [_no_records(version, told)], new)
    # What a person named is not made anew, though the DIC would.
    kept = matched.old.join(selected.select("file", "position"), on=["file", "position"], how="anti")
    vanished, changed = kept.filter(pl.col("row").is_null()), kept.filter("differs")
    more = matched.more if step.whole else []
    files = sorted({*out, *vanished["file"], *changed["file"]})
    target = None
    if more:
        target = next(iter(_files(version)), None)
        if target is None:
            raise InputError(f"{version.reference} has no file to which records could be added: make the version anew.")
        files = sorted({*files, target})
    edits = {
        file: _replace(
            told,
            version,
            file,
            removed=np.concatenate([out.get(file, np.empty(0, np.int64)), _positions(vanished, file)]),
            changed=changed.filter(pl.col("file") == file),
            more=more if file == target else [],
            new=new,
        )
        for file in files
    }
    done = StepDone(
        dataset=step.dataset,
        version=step.version,
        deleted=len(selected),
        recomputed=len(changed),
        vanished=len(vanished),
        appended=len(more),
    )
    return Edits(done, edits, target, more, matched)


def _replace(
    told: Dataset,
    version: Version,
    file: str,
    *,
    removed: Positions,
    changed: pl.DataFrame,
    more: Sequence[int],
    new: Sequence[bytes] | pa.Table,
) -> Edit:
    pairs = zip(changed["position"].to_list(), changed["row"].to_list(), strict=True)
    if not isinstance(new, pa.Table):
        return LineEdit(
            removed=removed,
            changed={position: new[row] for position, row in pairs},
            appended=[new[row] for row in more],
        )
    rows = new.take(pa.array([*changed["row"].to_list(), *more], pa.int64()))  # typed: there may be none
    numbers = {position: number for number, (position, _) in enumerate(pairs)}
    return RowEdit(removed=removed, changed=numbers, rows=_as_in(rows, version, file))


def _as_in(rows: pa.Table, version: Version, file: str) -> pa.Table:
    schema = schema_of(version, file)
    try:
        return rows.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError(
            f"What was made anew for {version.reference} has other columns than its files: {error}"
        ) from None


def _edit(told: Dataset, *, removed: Positions) -> Edit:
    return RowEdit(removed=removed) if told.format == "parquet" else LineEdit(removed=removed)


def _by_file(records: pl.DataFrame) -> Iterator[tuple[str, Positions]]:
    for (file,), rows in records.sort("file", "position").group_by(["file"], maintain_order=True):
        yield str(file), rows["position"].to_numpy()


def _positions(records: pl.DataFrame, file: str) -> Positions:
    return records.filter(pl.col("file") == file)["position"].to_numpy()


def _files(version: Version) -> list[str]:
    return [version.name_of(file) for file in version.files()]


def _find(version: Version, told: Dataset, file: str, positions: Positions) -> Found:
    """The records at these positions, all of which must be there."""
    if told.format == "parquet":
        rows, there = read_rows(version, file, positions)
        found = Found(file, there, rows)
    else:
        lines = read_lines(version, file, positions)
        found = Found(file, positions, [line for line in lines if line is not None])
    if len(found.records) != len(positions):
        raise InputError(f"{version.reference} has no longer all records that the plan names: make the plan anew.")
    return found


def _everything(version: Version, told: Dataset, file: str) -> Iterator[Found]:
    if told.format == "parquet":
        for positions, batch in all_rows(version, file):
            yield Found(file, positions, pa.Table.from_batches([batch]))
    else:
        for positions, lines in all_lines(version, file):
            yield Found(file, positions, lines)


def _all_of(version: Version, told: Dataset) -> Sequence[bytes] | pa.Table:
    found = [part.records for file in _files(version) for part in _everything(version, told, file)]
    tables = [part for part in found if isinstance(part, pa.Table)]
    if told.format == "parquet":
        return pa.concat_tables(tables) if tables else _nothing(version, told)
    return [line for part in found for line in part]


def _nothing(version: Version, told: Dataset) -> Sequence[bytes] | pa.Table:
    """No record, of the columns that the version has."""
    files = _files(version)
    return schema_of(version, files[0]).empty_table() if told.format == "parquet" and files else []


def _no_records(version: Version, told: Dataset) -> Found:
    return Found("", np.empty(0, np.int64), _nothing(version, told))
