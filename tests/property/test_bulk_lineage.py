"""Bulk traces on Spark answer for every record of a random lake as brute force over its edges does."""

import itertools
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from provenance_store.export.bulk import EDGES_FILE, RECORDS_FILE, STARTS_FILE, BulkSummary
from provenance_store.graph.reduced import dataset_name
from provenance_store.model.account import Verdict, worst_verdict
from spark_apps.lineage.app import run
from spark_apps.lineage.question import BulkQuestion
from tests.reduced import write_reduced

# Spark takes seconds whatever the size of a lake, so one lake is several small ones side by side.
PLACES = 6
REST = ("", "/f#0", "/f#7", "#k")


def name(place: int, number: int) -> str:
    """Few ids, so that runs meet: whole versions, their records by position and by key, and some of other kinds."""
    others = (f"x:{place}", f"lake:a{place}")
    if number < len(others):
        return others[number]
    version, rest = divmod(number - len(others), len(REST))
    return f"lake:{('a', 'b%20b')[version // 2]}{place}/{version % 2}{REST[rest]}"


NUMBERS = 2 + 4 * len(REST)
IDS = [name(place, number) for place in range(PLACES) for number in range(NUMBERS)]
VERSIONS = [number for number in range(2, NUMBERS) if (number - 2) % len(REST) == 0]


class Edge(NamedTuple):
    output: str
    input: str
    run: str


class Reduction(NamedTuple):
    """One graph of a run; of a declared one, edges are between whole versions."""

    run: str
    pairs: set[tuple[str, str]]
    verdict: Verdict
    declared: bool


@st.composite
def reductions(draw: st.DrawFn) -> Reduction:
    place, declared = draw(st.integers(0, PLACES - 1)), draw(st.integers(0, 3)) == 0
    numbers = st.sampled_from(VERSIONS) if declared else st.integers(0, NUMBERS - 1)
    ids = numbers.map(lambda number: name(place, number))
    return Reduction(
        f"run {place}-{draw(st.integers(0, 3))}",
        draw(st.sets(st.tuples(ids, ids), min_size=1, max_size=6)),
        "unknown" if declared else draw(st.sampled_from(["complete", "unknown", "partial"])),
        declared,
    )


questions = st.builds(
    BulkQuestion,
    st.sampled_from(["backward", "forward"]),
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([None, None, "b b0"]),
    st.booleans(),
    st.just(value=True),
)


class Lake:
    """The newest graph of every run, as plain sets."""

    def __init__(self, reductions: list[Reduction]) -> None:
        newest = {one.run: one for one in reductions}
        self.verdicts = {run: one.verdict for run, one in newest.items()}
        self.edges = {Edge(*pair, run) for run, one in newest.items() for pair in one.pairs}
        self.declared = {run for run, one in newest.items() if one.declared}

    def known(self) -> list[str]:
        ends = {end for edge in self.edges for end in edge[:2]}
        return [one for one in IDS if one in ends or version_of(one) in ends]

    def steps(self, record: str, *, backward: bool) -> set[Edge]:
        """The edges that lead on from a record, which stands at their near end."""
        steps = set()
        for edge in self.edges:
            near, far = (edge.output, edge.input) if backward else (edge.input, edge.output)
            follows = near == record
            if self.declared:
                follows |= edge.run in self.declared and near == version_of(record)
                follows |= record == version_of(near)
            if follows:
                steps.add(Edge(record, far, edge.run) if backward else Edge(far, record, edge.run))
        return steps


def version_of(record: str) -> str | None:
    found = re.match(r"(lake:[^/#]+/[^/#]+)[/#]", record)
    return found and found[1]


class Expected(NamedTuple):
    depths: dict[str, int]
    crossed: set[Edge]


def brute_force(lake: Lake, start: str, question: BulkQuestion) -> Expected:
    backward = question.direction == "backward"
    depths, crossed = {start: 0}, set()
    for depth in itertools.count():
        level = [record for record, at in depths.items() if at == depth]
        if not level or depth == question.depth:
            break
        for edge in set().union(*(lake.steps(record, backward=backward) for record in level)):
            crossed.add(edge)
            depths.setdefault(edge.input if backward else edge.output, depth + 1)
    kept = {
        record: depth
        for record, depth in depths.items()
        if depth
        and (question.to is None or dataset_name(record) == question.to)
        and not (question.ends_only and lake.steps(record, backward=backward))
    }
    return Expected(kept, crossed)


A, B, V, MEMBER = "x:0", "lake:a0/1#k", "lake:a0/1", "lake:a0/1/f#7"
CYCLE = Reduction("cycle", {(A, B), (B, A), (A, A)}, "partial", declared=False)
REPLACED = Reduction("cycle", {(MEMBER, "lake:a0")}, "complete", declared=False)
DECLARED = Reduction("declared", {("lake:b%20b0/1", V)}, "unknown", declared=True)


@settings(max_examples=4)
@example([CYCLE, DECLARED], BulkQuestion("backward", edges=True))
@example([CYCLE, DECLARED, REPLACED], BulkQuestion("forward", edges=True))
@given(st.lists(reductions(), min_size=1, max_size=40), questions)
def test_every_start_is_answered_as_by_brute_force(
    spark_session: SparkSession, reduced: list[Reduction], question: BulkQuestion
) -> None:
    lake = Lake(reduced)
    starts = lake.known()
    with TemporaryDirectory() as folder:
        lake_folder, out = Path(folder) / "reduced, [all] 100%25 ü", Path(folder) / "out"
        for generation, one in enumerate(reduced):
            marks = ["declared"] if one.declared else []
            place = lake_folder / f"run%20{generation} {{x}}"
            write_reduced(place, one.run, one.pairs, verdict=one.verdict, generation=generation, marks=marks)
        summary = run(spark_session, question, starts=starts, reduced=[lake_folder], out=out)
        records, told, edges = (pl.read_parquet(out / name / "*.parquet") for name in TABLES)
        assert BulkSummary.read(out) == summary

    expected = {start: brute_force(lake, start, question) for start in starts}
    rows = sorted(
        (start, record, dataset_name(record), depth)
        for start, one in expected.items()
        for record, depth in one.depths.items()
    )
    assert records.columns == ["start", "record", "dataset", "depth"]
    assert sorted(records.rows(), key=lambda row: row[:2]) == rows
    verdicts = {
        start: worst_verdict(lake.verdicts[edge.run] for edge in one.crossed) for start, one in expected.items()
    }
    counted = {start: (verdicts[start], len(one.depths)) for start, one in expected.items()}
    assert {start: (verdict, number) for start, verdict, number in told.rows()} == counted
    crossed = set().union(*(one.crossed for one in expected.values()))
    assert sorted(edges.rows()) == sorted(crossed)
    assert {one.run for one in summary.runs} == {edge.run for edge in crossed}
    assert (summary.starts, summary.records, summary.edges) == (len(starts), len(rows), len(crossed))
    assert summary.verdict == worst_verdict(verdicts.values())


TABLES = (RECORDS_FILE, STARTS_FILE, EDGES_FILE)
