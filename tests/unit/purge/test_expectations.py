"""The suites of datasets are held to the records of a version, and what is told of it quotes none."""

import json
from pathlib import Path

import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.lake import catalogue, layout, orders, tweets
from provenance_store.lake.catalogue import Catalogue, Dataset, Delete
from provenance_store.purge.expectations import Checked, check_suite
from provenance_store.purge.verify import verify
from tests.verifying import DONE, PurgedLake

SUITES = Path(tweets.__file__).with_name("suites")
JSON_LINES = Dataset(format="jsonl", policy=Delete())


def version_of(lake: Path, dataset: str, lines: list[str]) -> layout.Version:
    version = layout.version_of(lake, dataset, "v")
    version.path.mkdir(parents=True)
    (version.path / "f").write_text("".join(f"{line}\n" for line in lines))
    return version


def suite_of(folder: Path, *expectations: tuple[str, dict]) -> Path:
    told = [{"type": name, "kwargs": kwargs} for name, kwargs in expectations]
    (folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": told}))
    return folder / "suite.json"


def test_suites_come_with_what_is_generated(tmp_path):
    made = [tweets.generate(tmp_path, count=40, seed=1), orders.generate(tmp_path, count=40, seed=1)]
    told = Catalogue.load(tmp_path).datasets
    suites = {name: one.suite for name, one in told.items() if one.suite}
    named = sorted(f"suites/{path.name}" for path in SUITES.iterdir())
    assert sorted(suites.values()) == named
    assert [(tmp_path / suite).exists() for suite in named] == [True] * 5
    assert check_suite(tmp_path / suites["tweets"], made[0], told["tweets"]) == Checked(3, [])


def test_what_a_person_wrote_stays(tmp_path):
    template = Path(tweets.__file__).with_name("tweets.toml")
    (tmp_path / "catalogue.toml").write_text("[tweets]\nformat = 'jsonl'\npolicy = { do = 'delete' }\n")
    catalogue.extend(tmp_path, template)
    assert not (tmp_path / "suites/tweets.json").exists()
    (tmp_path / "suites/hashtag_counts.json").write_text("mine")
    (tmp_path / "suites/category_totals.json").unlink()
    before = (tmp_path / "catalogue.toml").read_bytes()
    catalogue.extend(tmp_path, template)
    assert (tmp_path / "catalogue.toml").read_bytes() == before
    assert (tmp_path / "suites/hashtag_counts.json").read_text() == "mine"
    assert (tmp_path / "suites/category_totals.json").exists()


@pytest.mark.parametrize(
    ("dataset", "good", "bad"),
    [
        ("hashtag_counts", ["a\t1", "b\t20"], ["a\t0", "a\t1", "\t2"]),
        ("category_totals", ["a\t1", "b\t20"], ["a\t-1", "a\t1", "\t2"]),
        ("top_orders", ['{"country":"AT","place":1,"order_id":5}'], ['{"place":4}', '{"place":4}']),
    ],
)
def test_our_suites_on_lines(tmp_path, dataset, good, bad):
    for template in ("tweets.toml", "orders.toml"):
        catalogue.extend(tmp_path, Path(tweets.__file__).with_name(template))
    told = Catalogue.load(tmp_path).of(dataset)
    suite = tmp_path / told.suite
    count = len(json.loads(suite.read_text())["expectations"])
    assert check_suite(suite, version_of(tmp_path / "good", dataset, good), told) == Checked(count, [])
    # A purge may leave nothing, and that is as expected as anything.
    assert check_suite(suite, version_of(tmp_path / "none", dataset, []), told) == Checked(count, [])
    assert len(check_suite(suite, version_of(tmp_path / "bad", dataset, bad), told).failed) == count


def test_our_suite_on_rows(tmp_path):
    catalogue.extend(tmp_path, Path(orders.__file__).with_name("orders.toml"))
    told = Catalogue.load(tmp_path).of("country_totals")
    version = layout.version_of(tmp_path, "country_totals", "v")
    version.path.mkdir(parents=True)
    good = pl.DataFrame({"country": ["AT", "DE"], "orders": [2, 1], "customers": [1, 1], "cents": [3, 4]})
    bad = pl.DataFrame({"country": ["AT", "AT", None], "orders": [2, 1, 0], "customers": [1, 2, 1], "cents": [3, 4, 0]})
    for frame, failed in ((good, 0), (good.clear(), 0), (bad, 4)):
        frame.write_parquet(version.path / "f.parquet")
        assert len(check_suite(tmp_path / told.suite, version, told).failed) == failed


def test_nothing_is_quoted_and_nothing_shown(tmp_path, capfd):
    suite = suite_of(
        tmp_path,
        ("expect_column_values_to_be_in_set", {"column": "handle", "value_set": ["a"]}),
        ("expect_column_values_to_be_between", {"column": "handle", "min_value": 1}),
        ("expect_column_values_to_not_be_null", {"column": "nowhere"}),
    )
    version = version_of(tmp_path, "d", ['{"handle": "secretive"}', "", '{"handle": null}'])
    checked = check_suite(suite, version, JSON_LINES)
    assert checked == Checked(
        3,
        [
            "expect_column_values_to_be_between of handle (it could not be evaluated)",
            "expect_column_values_to_be_in_set of handle",
            "expect_column_values_to_not_be_null of nowhere (it could not be evaluated)",
        ],
    )
    shown = capfd.readouterr()
    assert "secretive" not in shown.out + shown.err
    assert "Calculating" not in shown.out + shown.err


def test_a_column_of_several_types_is_one_of_texts(tmp_path):
    version = version_of(tmp_path, "d", ['{"a": 1, "b": 1}'])
    (version.path / "g").write_text('{"a": "x", "b": 2.5}\n')
    (version.path / "h").write_text('{"a": null}\n')
    suite = suite_of(
        tmp_path,
        ("expect_column_values_to_be_in_set", {"column": "a", "value_set": ["1", "x"]}),
        ("expect_column_sum_to_be_between", {"column": "b", "min_value": 3.5, "max_value": 3.5}),
    )
    assert check_suite(suite, version, JSON_LINES) == Checked(2, [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("[]", "has no list of expectations"),
        ('{"expectations": [{"type": "expect_wonders"}]}', "is not a suite of Great Expectations"),
        ('{"expectations": [5]}', "is not a suite of Great Expectations"),
    ],
)
def test_what_is_no_suite_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "suite.json").write_text(content)
    with pytest.raises(InputError, match=said):
        check_suite(tmp_path / "suite.json", version_of(tmp_path, "d", ["{}"]), JSON_LINES)


def test_a_purge_is_held_to_them(tmp_path):
    lake = PurgedLake(tmp_path)
    path = lake.root / "catalogue.toml"
    path.write_text(path.read_text().replace('key = ["hashtag"]', 'key = ["hashtag"]\nsuite = "suite.json"'))
    suite_of(lake.root, ("expect_column_values_to_be_in_set", {"column": "hashtag", "value_set": ["a", "b"]}))
    lake.purge()
    for number, passed in ((1, True), (2, False)):
        if number > 1:
            suite_of(lake.root, ("expect_column_values_to_be_in_set", {"column": "hashtag", "value_set": ["a"]}))
        findings = {one.name: one for one in verify(lake.settings, lake.graph, lake.stored, DONE)}
        finding = findings["hashtag_counts/r meets its expectations"]
        assert (finding.passed, finding.counts) == (passed, {"expectations": 1, "failed": int(not passed)})
    (lake.root / "suite.json").unlink()
    findings = {one.name: one.passed for one in verify(lake.settings, lake.graph, lake.stored, DONE)}
    assert findings["hashtag_counts/r meets its expectations"] is None
