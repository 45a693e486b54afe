"""A small lake with a purge that was planned and done by hand, for tests of what verifies and certifies purges."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from provenance_store.graph.tombstones import Known, Tombstone
from provenance_store.lake import layout
from provenance_store.lake.drafts import begin_draft, discard, draft_of, switch
from provenance_store.lake.layout import Version
from provenance_store.lake.rewriting import LineEdit, RowEdit, rewrite
from provenance_store.purge import folders
from provenance_store.purge.approval import Approval
from provenance_store.purge.done import StepDone
from provenance_store.purge.fingerprints import fingerprint_records
from provenance_store.purge.plan import INPUTS_SCHEMA, Plan, Step, StoredPlan, Topic, write_plan, write_tables
from provenance_store.settings import Settings

CATALOGUE = """
[tweets]
format = "jsonl"
policy = { do = "delete" }

[hashtag_counts]
format = "text"
columns = ["hashtag", "count"]
separator = "\\t"
key = ["hashtag"]
policy = { do = "recompute" }

[customers]
format = "parquet"
key = ["customer_id"]
policy = { do = "redact", null = ["email"], replace = { country = "??" } }
"""
TWEETS = [json.dumps({"handle": f"h{n}", "text": text}) for n, text in enumerate(["#a #b", "#b", "#c", "#a"])]
COUNTS = ["a\t2", "b\t2", "c\t1"]
CUSTOMERS = {"customer_id": [1, 2, 3], "email": ["x@x", "y@y", "z@z"], "country": ["AT", "DE", "AT"]}
DONE = [
    StepDone(dataset="tweets", version="v", deleted=2),
    StepDone(dataset="hashtag_counts", version="r", recomputed=2, vanished=1),
    StepDone(dataset="customers", version="v", redacted=1),
]


class Graph:
    """The tombstones of a lake graph, in memory."""

    def __init__(self) -> None:
        self.stones: dict[str, tuple[str, str | None]] = {}
        self.bare = True

    def bury(self, ids: Sequence[str], purge: str, fingerprints: Sequence[str | None]) -> None:
        for name, mark in zip(ids, fingerprints, strict=True):
            self.stones.setdefault(name, (purge, mark))

    def buried(self, ids: Sequence[str]) -> list[Tombstone]:
        return [Tombstone(name, self.stones[name][0], self.bare) for name in ids if name in self.stones]

    def recognise(self, fingerprints: Sequence[str]) -> list[Known]:
        known = {mark: (name, purge) for name, (purge, mark) in self.stones.items()}
        return [Known(mark, *known[mark]) for mark in fingerprints if mark in known]


class PurgedLake:
    """Tweets 0 and 2 are selected; `a` and `b` are counted anew, `c` vanishes; and a customer is redacted."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home, lake=str(home / "lake"))
        self.graph = Graph()
        self.root = self.settings.lake
        self.root.mkdir(parents=True)
        (self.root / "catalogue.toml").write_text(CATALOGUE)
        self.tweets = self.write("tweets", "v", {"part-0": TWEETS[:2], "part-1": TWEETS[2:]})
        about = {"run": "r", "dic": "hashtag-count", "inputs": ["tweets/v"], "generation": 0}
        self.counts = self.write("hashtag_counts", "r", {"part-0": COUNTS}, about)
        self.customers = layout.version_of(self.root, "customers", "v")
        with layout.new_version(self.customers, {}) as folder:
            pl.DataFrame(CUSTOMERS).write_parquet(folder / "part-0.parquet")
        self.stored = self._plan()

    def write(
        self, dataset: str, name: str, files: Mapping[str, Sequence[str]], about: Mapping[str, object] | None = None
    ) -> Version:
        version = layout.version_of(self.root, dataset, name)
        with layout.new_version(version, about or {}) as folder:
            for file, lines in files.items():
                (folder / file).write_text("".join(f"{line}\n" for line in lines))
        return version

    def purge(self) -> None:
        """All of it, as it should be done."""
        fingerprint_records(self.settings, self.stored)
        self.edit(self.tweets, {"part-0": LineEdit(removed=[0]), "part-1": LineEdit(removed=[0])})
        self.edit(self.counts, {"part-0": LineEdit(changed={0: b"a\t1", 4: b"b\t1"}, removed=[8])})
        self.redact({"email": None, "country": "??"})

    def redact(self, values: Mapping[str, str | None]) -> None:
        row = pl.DataFrame({"customer_id": [2], **{name: [value] for name, value in values.items()}})
        like = pl.DataFrame(CUSTOMERS)
        rows = row.cast(dict(like.schema)).select(like.columns).to_arrow()
        self.edit(self.customers, {"part-0.parquet": RowEdit(changed={1: 0}, rows=rows)})

    def edit(self, version: Version, edits: Mapping[str, LineEdit | RowEdit], purge: str | None = None) -> None:
        purge = purge or self.stored.id
        draft = begin_draft(version, purge)
        for file, edit in edits.items():
            rewrite(version, file, edit, draft)
        switch(version, draft)
        discard(draft_of(version, purge))

    def approval(self) -> Approval:
        return Approval(plan=self.stored.id, digest=self.stored.digest, who="officer", when="2026-03-04T05:06:07+00:00")

    def _plan(self) -> StoredPlan:
        made = {"run": None, "dic": None, "inputs": [], "selected": 0, "reached": 0}
        steps = [
            Step(**{**made, "selected": 2}, dataset="tweets", version="v", policy="delete", records=4),
            Step(
                **{**made, "run": "r", "dic": "hashtag-count", "inputs": ["tweets/v"], "reached": 3},
                dataset="hashtag_counts",
                version="r",
                policy="recompute",
                records=3,
            ),
            Step(**{**made, "selected": 1}, dataset="customers", version="v", policy="redact", records=3),
        ]
        records = [
            ("tweets", "v", "part-0", 0, True),
            ("tweets", "v", "part-1", 0, True),
            ("hashtag_counts", "r", "part-0", 0, False),
            ("hashtag_counts", "r", "part-0", 4, False),
            ("hashtag_counts", "r", "part-0", 8, False),
            ("customers", "v", "part-0.parquet", 1, True),
        ]
        rows = pl.DataFrame(
            [
                (f"lake:{d}/{v}/{file}#{position}", d, v, file, position, chosen)
                for d, v, file, position, chosen in records
            ],
            schema=["id", "dataset", "version", "file", "position", "selected"],
            orient="row",
        )
        with folders.new_folder(self.root, "plans") as folder:
            recorded, read = write_tables(folder, rows, pl.DataFrame(pl.from_arrow(INPUTS_SCHEMA.empty_table())))
            plan = Plan(
                selection="s-0123456789abcdef",
                made="2026-03-04T05:06:07+00:00",
                by="engineer",
                expires="2026-03-11T05:06:07+00:00",
                verdict="complete",
                incomplete=[],
                holds=[],
                gone=[],
                steps=steps,
                topics=[Topic("headwater.hashtag-count", "2026-03-05T00:00:00+00:00")],
                state={},
                records_digest=recorded,
                inputs_digest=read,
            )
            return write_plan(folder, plan, "")
