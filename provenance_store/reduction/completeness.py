"""Which messages count, and whether they are all there: each run's messages judged by its manifest.

The judgement depends on the set of messages alone, not on the order or the partitions in which they were read:

- The manifest with the highest generation holds; of several that differ in the same generation, the greatest by bytes.
- Of copies of one (attempt, seq) that differ, the least by size and checksum counts, and the others are duplicates.
- A message without headers belongs to the one run that the source holds, else to a run of its own, `unknown`. It is
  used where that run has no manifest, and discarded where it has one.
- `messages` counts all that was read of the run but its readable manifests, so it is the sum of those used,
  duplicates, discarded and rejected.
"""

from typing import NamedTuple

import polars as pl

from provenance_store.model.account import Account, Verdict
from provenance_store.model.message import DECLARED, MANIFEST, Manifest

UNKNOWN_RUN = "unknown"


class Judgement(NamedTuple):
    """What is known of a run from its messages; the tables hold rows of the message table."""

    run: str
    dic: str
    verdict: Verdict
    messages: int
    bytes: int
    duplicates: int
    discarded: int
    missing: dict[str, list[int]]
    generation: int
    marks: list[str]
    used: pl.DataFrame
    rejected: pl.DataFrame
    shows_records: bool  # whether any message does, also one that does not count

    @property
    def names_records(self) -> bool:
        """Whether any entity in the messages used is a record of the lake."""
        return bool(self.used["lake"].any())

    @property
    def lacks_names(self) -> bool:
        """Whether the names of ids outside the lake are needed, and may have been left out as not needed."""
        return self.shows_records and not self.names_records

    def account(self, *, edges_local: int, edges_out: int, seconds: float, unmade: int = 0) -> Account:
        """The account of the graph that was reduced from the messages used."""
        return Account(
            run=self.run,
            dic=self.dic,
            verdict=self.verdict,
            messages=self.messages,
            bytes=self.bytes,
            edges_in=int(self.used["edges"].sum()),
            edges_local=edges_local,
            edges_out=edges_out,
            duplicates=self.duplicates,
            discarded=self.discarded,
            rejected=self.rejected.height,
            missing=self.missing,
            seconds=round(seconds, 3),
            generation=self.generation,
            marks=self.marks,
            unmade=unmade,
        )


def judge(messages: pl.DataFrame) -> list[Judgement]:
    """A judgement for each run in a whole source's message table, in the order of their ids."""
    named = messages["run"].drop_nulls().unique()
    stray_run = named[0] if len(named) == 1 else UNKNOWN_RUN
    groups = messages.with_columns(pl.col("run").fill_null(stray_run)).partition_by("run", as_dict=True)
    return [_judge_run(str(run), group) for (run,), group in sorted(groups.items())]


def _judge_run(run: str, group: pl.DataFrame) -> Judgement:
    sound = pl.col("reason").is_null()
    manifests = group.filter((pl.col("kind") == MANIFEST) & sound)
    rest = group.filter(~((pl.col("kind") == MANIFEST) & sound))
    rejected, readable = rest.filter(~sound), rest.filter(sound)
    manifest, announced = _choose_manifest(manifests)
    wanted = readable if manifest is None else _listed(readable, manifest)
    named = wanted.filter(pl.col("attempt").is_not_null())
    once = named.sort("bytes", "crc", "message").unique(["attempt", "seq"], keep="first", maintain_order=True)
    used = pl.concat([once, wanted.filter(pl.col("attempt").is_null())])
    missing = {} if manifest is None else _missing(once, manifest)
    return Judgement(
        run=run,
        dic=choose_dic(announced, used, group),
        verdict=_verdict(manifest, missing),
        messages=rest.height,
        bytes=int(rest["bytes"].sum()),
        duplicates=named.height - once.height,
        discarded=readable.height - wanted.height,
        missing=missing,
        generation=manifest.generation if manifest else 0,
        marks=sorted(set(manifest.marks)) if manifest else [],
        used=used,
        rejected=rejected,
        shows_records=bool(group["lake"].any()),
    )


def _verdict(manifest: Manifest | None, missing: dict[str, list[int]]) -> Verdict:
    if missing:
        return "partial"
    # What was declared and not captured is all there, and still tells nothing of single records.
    return "unknown" if manifest is None or DECLARED in manifest.marks else "complete"


def _choose_manifest(manifests: pl.DataFrame) -> tuple[Manifest | None, pl.DataFrame]:
    """The manifest that holds, and the messages that brought it."""
    values: list[bytes] = manifests["manifest"].unique().to_list()
    if not values:
        return None, manifests
    value = max(values, key=lambda value: (Manifest.from_bytes(value).generation, value))
    return Manifest.from_bytes(value), manifests.filter(pl.col("manifest") == value)


def _listed(messages: pl.DataFrame, manifest: Manifest) -> pl.DataFrame:
    """The messages that the manifest counts."""
    counts = pl.DataFrame(
        {"attempt": list(manifest.attempts), "count": list(manifest.attempts.values())},
        schema={"attempt": pl.String, "count": pl.Int64},
    )
    counted = messages.join(counts, on="attempt", maintain_order="left")
    return counted.filter(pl.col("seq") < pl.col("count")).drop("count")


def _missing(once: pl.DataFrame, manifest: Manifest) -> dict[str, list[int]]:
    got: dict[str, list[int]] = dict(once.group_by("attempt").agg("seq").iter_rows())
    return {
        attempt: sorted(set(range(count)).difference(got.get(attempt, ())))
        for attempt, count in sorted(manifest.attempts.items())
        if len(got.get(attempt, ())) < count
    }


def choose_dic(*sources: pl.DataFrame) -> str:
    """The DIC as the first of the sources that names one has it."""
    for messages in sources:
        names = messages["dic"].filter(messages["dic"] != "")
        if len(names):
            return str(names.min())
    return ""
