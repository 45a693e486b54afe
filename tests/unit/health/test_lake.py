import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from provenance_store.graph.consequences import KnownRun
from provenance_store.graph.retention import OldRun, Pruned
from provenance_store.health.datasets import check_newest, check_version
from provenance_store.health.runs import find_incomplete, find_overdue, find_unended
from provenance_store.lake import layout, tweets
from provenance_store.settings import RetentionSettings, Settings


class Graph:
    def __init__(self, *runs: KnownRun) -> None:
        self._runs = list(runs)
        self.before: datetime | None = None

    def runs(self) -> list[KnownRun]:
        return self._runs

    def prune(self, *, before: datetime | None = None, dataset: str | None = None, dry_run: bool = False) -> Pruned:
        assert dry_run
        assert dataset is None
        self.before = before
        return Pruned(runs=[OldRun("old", "dic", datetime(2026, 1, 2, tzinfo=UTC), 1, [])], left=[])


def known(run: str, **other: Any) -> KnownRun:
    told = {"dic": "dic", "verdict": "complete", "generation": 1, "revision": 1, "declared": False, "marks": []}
    return KnownRun(run=run, **{**told, **other})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", lake=tmp_path / "lake")


def write(settings: Settings, dataset: str, run: str, generation: int = 1) -> None:
    about = {"run": run, "dic": "dic", "inputs": [], "generation": generation}
    with layout.new_version(layout.version_of(settings.lake, dataset, run), about) as folder:
        (folder / "part-00000").touch()


def test_an_empty_lake_is_healthy(settings: Settings) -> None:
    graph = Graph()
    assert list(check_newest(settings)) == []
    assert list(find_incomplete(settings, graph)) == []
    assert list(find_unended(settings, hours=1)) == []
    assert list(find_overdue(settings, graph)) == []


def test_runs_that_the_graph_lacks_are_told(settings: Settings) -> None:
    for run, generation in {"whole": 1, "again": 2, "lost": 1, "gaps": 1, "pruned": 5}.items():
        write(settings, "counts", run, generation)
    graph = Graph(
        known("running", verdict="unknown", live=True),
        known("whole"), known("again"), known("gaps", verdict="partial"), known("pruned", revision=None),
        known("declared", verdict="unknown", declared=True),
    )  # fmt: skip
    assert {fault.about for fault in find_incomplete(settings, graph)} == {"counts/again", "counts/lost", "gaps"}


def test_runs_that_never_ended_are_told_once_they_are_old(settings: Settings) -> None:
    write(settings, "counts", "ended")
    for name in ("ended", "new", "old"):
        folder = settings.home / "runs" / name
        folder.mkdir(parents=True)
        (folder / "hadoop.log").touch()
        if name != "new":
            for path in (folder, folder / "hadoop.log"):
                os.utime(path, (time.time() - 7200, time.time() - 7200))
    assert [fault.about for fault in find_unended(settings, hours=1)] == ["old"]
    assert list(find_unended(settings, hours=3)) == []


def test_what_is_kept_for_too_long_is_told(settings: Settings) -> None:
    graph = Graph()
    strict = settings.model_copy(update={"retention": RetentionSettings(days=30)})
    (fault,) = find_overdue(strict, graph)
    assert fault.sentence == "it was merged on 2026-01-02, and may be kept 30 days."
    assert graph.before is not None


def test_suites_of_the_newest_versions_are_met_or_told(settings: Settings) -> None:
    made = tweets.generate(settings.lake, count=3, seed=1)
    assert list(check_newest(settings)) == []
    assert "no suite" in check_version(settings, "categories")[0].sentence
    (made.path / "part-00000.jsonl").write_text('{"handle": null, "text": "a secret"}\n')
    faults = list(check_newest(settings))
    assert {fault.about for fault in faults} == {made.reference}
    assert "a secret" not in str(faults)
