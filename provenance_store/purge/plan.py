"""A plan: what a purge would do with every record that it touches, in a folder that cannot be altered unseen.

`plan.json` tells it in numbers, `records.parquet` names the records, `inputs.parquet` those that have to be read to
make others anew, `plan.html` is for people. A plan is named after the hash of `plan.json`, which holds those of the
other files; whoever opens a plan has them checked.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.model.account import Verdict
from provenance_store.model.files import write_whole
from provenance_store.purge import folders
from provenance_store.storage.paths import staged

FORMAT = 1
PLAN, RECORDS, INPUTS, PAGE = "plan.json", "records.parquet", "inputs.parquet", "plan.html"
Action: TypeAlias = Literal["delete", "redact", "recompute"]

# What is touched, and where it stands: `position` is the one that the record's id has, or would have.
RECORDS_SCHEMA = pa.schema(
    [
        ("id", pa.large_string()),
        ("dataset", pa.large_string()),
        ("version", pa.large_string()),
        ("file", pa.large_string()),
        ("position", pa.int64()),
        ("selected", pa.bool_()),
    ]
)
# For the step of `dataset` and `version`, the records that it reads: of another version, and where they stand there.
INPUTS_SCHEMA = pa.schema(
    [
        ("dataset", pa.large_string()),
        ("version", pa.large_string()),
        ("id", pa.large_string()),
        ("of_dataset", pa.large_string()),
        ("of_version", pa.large_string()),
        ("file", pa.large_string()),
        ("position", pa.int64()),
    ]
)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one version of one dataset.

    Selected records go by the policy, but are deleted where it is to recompute; reached ones go by the policy.
    """

    dataset: str
    version: str
    policy: Action
    # Who made the version from what, as its marker tells; nobody we know, where it was put there by hand.
    run: str | None
    dic: str | None
    inputs: list[str]
    selected: int
    reached: int
    # Of the version, before anything is done.
    records: int
    # Reached in the lake graph and not in the version: earlier purges took them out.
    absent: int = 0
    # Why all of the version is made anew, or touched; empty where only the records that were reached are.
    whole: str = ""
    # Whether what the deleted inputs added is taken away, so that only these are read.
    subtracts: bool = False
    # So many records of its inputs must be read.
    reads: int = 0
    # Of results of a stream that are made anew, the lanes of its run that are.
    lanes: list[int] = []

    @property
    def reference(self) -> str:
        """How a person names the version."""
        return f"{self.dataset}/{self.version}"


class Held(msgspec.Struct, frozen=True):
    """A dataset under a legal hold that the purge would touch."""

    dataset: str
    who: str
    why: str
    records: int


class Topic(msgspec.Struct, frozen=True):
    """A Kafka topic that tells of touched records, and when the last of that has expired; None where nobody knows."""

    name: str
    until: str | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is planned, in numbers. Times are ISO 8601, in UTC."""

    format: int = FORMAT
    selection: str
    made: str
    by: str
    expires: str
    verdict: Verdict
    # Sentences: why the lake graph may not know all that was made from the selected records.
    incomplete: list[str]
    holds: list[Held]
    # Versions that the lake graph knows and the lake no longer has.
    gone: list[str]
    # Inputs before outputs.
    steps: list[Step]
    topics: list[Topic]
    # Stream runs that took in touched records: what is kept of their events, to replay from, goes.
    forgets: list[str] = []
    # By what it is told that the lake has moved on: see `state.py`.
    state: dict[str, str]
    records_digest: str
    inputs_digest: str
    page_digest: str = ""

    def has_expired(self, now: datetime | None = None) -> bool:
        """Whether it is too old to be followed."""
        return (now or datetime.now(UTC)) >= datetime.fromisoformat(self.expires)


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan with its folder, as it was made."""

    id: str
    # The SHA-256 of `plan.json`, of which the id is the beginning.
    digest: str
    path: Path
    plan: Plan

    def records(self, step: Step | None = None) -> pl.DataFrame:
        """The touched records, by dataset, version, file and position: of all steps, or of one."""
        return _rows(self.path / RECORDS, step)

    def inputs(self, step: Step | None = None) -> pl.DataFrame:
        """What a step that is not whole reads, or all such steps."""
        return _rows(self.path / INPUTS, step)


def open_plan(lake: Path, name: str) -> StoredPlan:
    """The plan of this id, checked to be as it was made."""
    folder = folders.find(lake, "plans", name)
    try:
        content = (folder / PLAN).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if folders.id_of("plans", digest) != name:
            raise _altered(name, PLAN)
        plan = _decode(content, name)
        digests = {RECORDS: plan.records_digest, INPUTS: plan.inputs_digest, PAGE: plan.page_digest}
        for file, expected in digests.items():
            if folders.digest_of(folder / file) != expected:
                raise _altered(name, file)
    except FileNotFoundError as error:
        raise _altered(name, Path(error.filename).name) from None
    return StoredPlan(name, digest, folder, plan)


def list_plans(lake: Path) -> list[str]:
    """The ids of the plans of a lake."""
    return folders.list_ids(lake, "plans")


def write_tables(folder: Path, records: pl.DataFrame, inputs: pl.DataFrame) -> tuple[str, str]:
    """Write both tables, in their order; the digests that their plan holds."""
    sorted_records = records.sort("dataset", "version", "file", "position")
    sorted_inputs = inputs.sort("dataset", "version", "of_dataset", "of_version", "file", "position")
    with staged(folder / RECORDS) as file:
        pq.write_table(sorted_records.to_arrow().cast(RECORDS_SCHEMA), file, compression="zstd")
    with staged(folder / INPUTS) as file:
        pq.write_table(sorted_inputs.to_arrow().cast(INPUTS_SCHEMA), file, compression="zstd")
    return folders.digest_of(folder / RECORDS), folders.digest_of(folder / INPUTS)


def write_plan(folder: Path, plan: Plan, page: str) -> StoredPlan:
    """Write the plan beside its tables, and give the folder its name."""
    write_whole(folder / PAGE, page.encode())
    plan = msgspec.structs.replace(plan, page_digest=folders.digest_of(folder / PAGE))
    content = msgspec.json.format(msgspec.json.encode(plan, order="deterministic")) + b"\n"
    digest = hashlib.sha256(content).hexdigest()
    write_whole(folder / PLAN, content)
    name = folders.id_of("plans", digest)
    return StoredPlan(name, digest, folders.keep(folder, name, last=PLAN), plan)


def _rows(file: Path, step: Step | None) -> pl.DataFrame:
    rows = folders.scan_parquet(file)
    if step is not None:
        rows = rows.filter(pl.col("dataset") == step.dataset, pl.col("version") == step.version)
    return rows.collect()


def _decode(content: bytes, name: str) -> Plan:
    form: Any = msgspec.json.decode(content).get("format")
    if form != FORMAT:
        raise InputError(f"Plan {name} has format {form}, and this release reads {FORMAT}: make the plan anew.")
    return msgspec.json.decode(content, type=Plan)


def _altered(name: str, file: str) -> InputError:
    return InputError(
        f"Plan {name} was altered: {file} is not as it was made. Nobody may follow it: make the plan anew."
    )
