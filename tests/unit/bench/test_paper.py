"""The paper's evaluation on tiny data."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from provenance_store.bench.paper import Evaluation
from provenance_store.bench.paper_accuracy import EXACT, Accuracy, compare, measure_accuracy
from provenance_store.bench.paper_sizes import GROUPING, UNBOUNDED, measure_local, measure_sizes
from provenance_store.cli import bench as cli
from provenance_store.cli.main import app

TWEETS = 600


def quiet(_: str) -> None:
    pass


def test_in_order_every_way_finds_everything_and_out_of_order_the_exact_one_still_does() -> None:
    rows = measure_accuracy(TWEETS, (0, 40), seed=1, say=quiet)
    assert not any(row.false for row in rows)
    shares = {(row.way, row.percent): row.share for row in rows}
    assert all(share == 100 for (_, percent), share in shares.items() if percent == 0)
    assert shares[EXACT, 40] == shares["grouping", 40] == 100
    assert shares["serial", 40] < shares["window", 40] < 100
    assert all(row.left_over == 0 for row in rows if row.way == EXACT)


def test_what_is_emitted_is_told_apart() -> None:
    truth = {("lake:out#1", "lake:in#1"), ("lake:out#1", "lake:in#2")}
    emitted = [
        ("urn:lake:out#1", "urn:lake:in#1"),
        ("urn:lake:out#1", "urn:lake:in#9"),
        ("urn:lake:out#1", "urn:run:x"),
    ]
    assert compare("w", 5, emitted, truth) == Accuracy(way="w", percent=5, true=2, found=1, false=1, left_over=1)


def test_partitions_along_the_paths_reduce_most_and_those_by_function_do_not_care_for_batches() -> None:
    rows = measure_local(6000, (1000, 20_000), quiet)
    emitted = {(row.partitioning, row.batch): row.edges_out for row in rows}
    assert emitted["vertical", 20_000] == min(emitted.values())
    assert emitted["vertical", 20_000] < emitted["vertical", 1000]
    assert emitted["horizontal", 20_000] == pytest.approx(emitted["horizontal", 1000], rel=0.02)


def test_the_table_weighs_the_graph_at_three_places() -> None:
    rows = {row.way: row for row in measure_sizes(TWEETS, quiet)}
    assert list(rows) == [GROUPING, UNBOUNDED, EXACT]
    for row in rows.values():
        assert row.edges_in > row.edges_local > row.edges_out
        assert row.bytes_in > row.bytes_local > row.bytes_out
        assert row.followed == 100
    assert rows[EXACT].edges_in == rows[GROUPING].edges_in
    assert rows[EXACT].parquet


def test_the_command_measures_prints_and_draws(tmp_path: Path) -> None:
    small = [f"--{part}-tweets={TWEETS}" for part in ("accuracy", "local", "table", "speedup")]
    arguments = ["bench", "paper", *small, "--percent=10", "--batch=1000", "--processes=1", "--repeat=1"]
    done = CliRunner().invoke(cli.app, [*arguments, f"--figures={tmp_path / 'figures'}"])
    assert done.exit_code == 0, done.output
    assert all(title in done.stdout for title in ("Figure 14", "Figure 15", "Figure 16", "Table I"))
    drawn = sorted((tmp_path / "figures").iterdir())
    assert [file.name for file in drawn] == ["paper-accuracy.png", "paper-local.png", "paper-speedup.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in drawn)


def test_a_folder_that_cannot_be_drawn_into_gets_a_sentence_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["bench", "paper", f"--figures={tmp_path / 'file' / 'figures'}"])
    assert "cannot be written to" in str(done.exception)


def test_a_wrong_result_is_told() -> None:
    false = Accuracy(way="window", percent=0, true=5, found=5, false=1, left_over=0)
    lost = Accuracy(way=EXACT, percent=5, true=5, found=4, false=0, left_over=0)
    told = Evaluation([false, lost], [], [], []).wrong()
    assert told == [
        "window told 1 false dependencies",
        "the exact reduction found 4 of 5, 5 % out of order",
    ]


def test_an_evaluation_can_be_told_to_scripts() -> None:
    assert json.dumps(Evaluation(measure_accuracy(50, (0,), seed=1, say=quiet), [], [], []).to_dict())
