from pathlib import Path
from typing import Any

import msgspec
import pytest

from provenance_store.errors import InputError
from provenance_store.health.finding import Fault, refuse
from provenance_store.health.graphs import JobsOwn, check_graph
from provenance_store.lake import layout, tweets
from provenance_store.lake.records import lines_of
from provenance_store.settings import Settings
from tests.reduced import write_reduced

JOB = JobsOwn(run="r", dic="count", inputs=["tweets/n4-s1"], outputs=["hashtag_counts/r"], generation=3, messages=2)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(home=tmp_path / "home", lake=tmp_path / "lake")
    tweets.generate(made.lake, count=4, seed=1)
    with layout.new_version(layout.version_of(made.lake, "hashtag_counts", "r"), {}) as folder:
        (folder / "part-00000").write_text("rain\t2\nsun\t1\n")
    return made


def edges(settings: Settings) -> list[tuple[str, str]]:
    inputs = [record for record, _ in lines_of(layout.resolve(settings.lake, "tweets/n4-s1"))]
    return [("lake:hashtag_counts/r/part-00000#0", one) for one in inputs[:2]] + [
        ("lake:hashtag_counts/r/part-00000#7", inputs[3])
    ]


def faults(settings: Settings, tmp_path: Path, more: list[tuple[str, str]] = [], **account: Any) -> list[str]:  # noqa: B006
    told = {"dic": "count", "generation": 3, "messages": 2, **account}
    folder = write_reduced(tmp_path / "reduced", "r", [*edges(settings), *more], **told)
    return [fault.about + ": " + fault.sentence for fault in check_graph(settings, folder, JOB)]


def test_a_whole_graph_passes(settings: Settings, tmp_path: Path) -> None:
    assert faults(settings, tmp_path, duplicates=1, messages=3) == []


@pytest.mark.parametrize(
    ("account", "about"),
    [
        ({"verdict": "partial", "missing": {"a": [1, 2]}}, "verdict: provenance is partial, 2 messages"),
        ({"verdict": "unknown"}, "verdict: provenance is unknown"),
        ({"generation": 2}, "generation: the graph is of execution 2"),
        ({"messages": 1}, "messages: the job sent 2 messages, and 1"),
        ({"unmade": 4}, "unmade: 4 items"),
        ({"dic": "other"}, "run: the graph is of run r of other"),
    ],
)
def test_what_its_account_tells(settings: Settings, tmp_path: Path, account: dict[str, Any], about: str) -> None:
    (found,) = faults(settings, tmp_path, **account)
    assert found.startswith(about)


@pytest.mark.parametrize(
    ("edge", "about"),
    [
        (("lake:hashtag_counts/r/part-00000#3", "lake:tweets/n4-s1/part-00000.jsonl#0"), "would dangle"),
        (("lake:hashtag_counts/r/part-00000#0", "lake:tweets/n4-s1/part-00009.jsonl#0"), "would dangle"),
        (("lake:hashtag_counts/q/part-00000#0", "lake:tweets/n4-s1/part-00000.jsonl#0"), "the job says that it wrote"),
        (("lake:hashtag_counts/r/part-00000#0", "lake:categories/n4-s1/part-00000.jsonl#0"), "says that it read"),
        (("lake:hashtag_counts/r/part-00000#0", "elsewhere:1"), "says that it read"),
    ],
)
def test_ids_that_would_dangle_or_are_of_others(
    settings: Settings, tmp_path: Path, edge: tuple[str, str], about: str
) -> None:
    assert about in " ".join(faults(settings, tmp_path, [edge]))


def test_outputs_without_any_provenance_are_told(settings: Settings, tmp_path: Path) -> None:
    folder = write_reduced(tmp_path / "reduced", "r", [], dic="count", generation=3, messages=2)
    (fault,) = check_graph(settings, folder, JOB)
    assert fault == Fault(
        "outputs", "the job wrote 2 records into hashtag_counts/r, and the graph knows of none of them."
    )


def test_what_did_not_pass_is_told_whole() -> None:
    refuse("Nothing", [])
    with pytest.raises(InputError, match=r"It did not pass:\n  a: b\n  c: d"):
        refuse("It", [Fault("a", "b"), Fault("c", "d")])
    assert msgspec.to_builtins(Fault("a", "b")) == {"about": "a", "sentence": "b"}


def test_another_suite_may_be_named(settings: Settings, tmp_path: Path) -> None:
    suite = tmp_path / "small.json"
    suite.write_text(
        '{"name": "small", "expectations": [{"type": "expect_table_row_count_to_be_between", '
        '"kwargs": {"max_value": 2}}]}'
    )
    folder = write_reduced(tmp_path / "reduced", "r", edges(settings), dic="count", generation=3, messages=2)
    (fault,) = check_graph(settings, folder, JOB, suite)
    assert fault == Fault("suite", "expect_table_row_count_to_be_between is not met (small.json).")
