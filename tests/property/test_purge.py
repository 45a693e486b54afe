"""After a purge the lake holds what the pipeline makes without the selected records, each under the id that it had."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.rewriting import rewrite
from provenance_store.purge.apply import Engine, Task
from provenance_store.settings import Settings
from spark_apps.purge import rerun
from spark_apps.purge.engine import SparkEngine
from spark_apps.purge.rerun import Rerun
from tests.purging import OrdersLake, TwitterLake, count_hashtags, report_countries, report_top, total_categories

texts = st.lists(st.sampled_from(["#rain", "#sun", "#Sun", "#fog", "dry", "Ünïcode #schnee"]), max_size=4).map(" ".join)
tweeted = st.lists(st.lists(texts, max_size=6), min_size=1, max_size=3)
rows = st.lists(
    st.tuples(st.sampled_from(["rain", "sun", "fog", "schnee", "none"]), st.sampled_from(["wet", "dry"])), max_size=5
)


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


def lines_in(files: list[list[str]]) -> list[list[bytes]]:
    number = iter(range(1000))
    same = {"time": "2026-01-02T03:04:05Z", "handle": "ann"}
    return [[msgspec.json.encode({"id": str(next(number)), **same, "text": text}) for text in file] for file in files]


def cases(count: int) -> settings:
    """So many, and ten times as many where one looks longer: each is a purge from selection to certificate."""
    return settings(max_examples=count * (10 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1))


class PlainEngine:
    """Does all of it here, as a purge does where there is little to do, so that there is time for many cases."""

    def rewrite(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            rewrite(*task)

    def rerun(self, dic: str, settings: Settings, *, run: str, inputs: Sequence[str], captured: bool) -> None:
        Rerun(no_spark)(dic, settings, run=run, inputs=inputs, captured=captured)


def no_spark() -> SparkSession:
    raise AssertionError("Spark is not needed here")


@cases(60)
@given(tweeted, rows, st.data())
def test_both_twitter_dics(
    neo4j_service: Settings,
    lake_graph: LakeGraph,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[str]],
    categories: list[tuple[str, str]],
    data: st.DataObject,
) -> None:
    lake = TwitterLake(neo4j_service, tmp_path_factory.mktemp("purge"), lake_graph)
    check_twitter(lake, PlainEngine(), files, categories, data)


@cases(12)
@given(tweeted, rows, st.data())
def test_both_twitter_dics_on_spark(
    neo4j_service: Settings,
    lake_graph: LakeGraph,
    spark_session: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[str]],
    categories: list[tuple[str, str]],
    data: st.DataObject,
) -> None:
    lake = TwitterLake(neo4j_service, tmp_path_factory.mktemp("purge"), lake_graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rerun, "_MUCH_FOR_OBJECTS", -1)
        check_twitter(lake, SparkEngine(lambda: spark_session), files, categories, data)


def check_twitter(
    lake: TwitterLake, engine: Engine, files: list[list[str]], categories: list[tuple[str, str]], data: st.DataObject
) -> None:
    lake.make(lines_in(files), [msgspec.json.encode({"hashtag": tag, "category": name}) for tag, name in categories])
    before = {name: lake.read(name) for name in ("tweets", "categories", "hashtag_counts", "category_totals")}
    sources = [*before["tweets"], *before["categories"]]
    if not sources:
        return
    selected = set(data.draw(st.lists(st.sampled_from(sources), min_size=1, max_size=4)))

    certificate = lake.purge(lake.plan(sorted(selected)), engine)

    for source in ("tweets", "categories"):
        assert lake.read(source) == {one: line for one, line in before[source].items() if one not in selected}
    tweets, table = lake.read("tweets"), lake.read("categories")
    counts = count_hashtags(tweets.values())
    totals = total_categories(counts.values(), table.values())
    for name, expected in (("hashtag_counts", counts), ("category_totals", totals)):
        stood = {one: line.rpartition(b"\t")[0] for one, line in before[name].items()}
        assert lake.read(name) == {one: expected[key] for one, key in stood.items() if key in expected}
    # A row of which another is left under the same key has not gone, and the certificate says so.
    hashtag = {one: msgspec.json.decode(line)["hashtag"] for one, line in before["categories"].items()}
    left = {hashtag[one] for one in before["categories"] if one not in selected}
    is_left = any(hashtag[one] in left for one in selected & hashtag.keys())
    failed = [finding.name for finding in certificate.findings if finding.passed is False]
    assert failed == ["nothing equal to them is found"] * is_left


ids = st.integers(0, 5)
customers_of = st.dictionaries(ids, st.tuples(st.sampled_from(["AT", "BR", None]), st.booleans()), min_size=1)
sold = st.lists(st.tuples(ids, st.sampled_from(["paid", "cancelled"]), st.integers(1, 4)), min_size=1, max_size=12)


@cases(6)
@given(sold, customers_of, st.data())
def test_the_orders_dic(
    neo4j_service: Settings,
    lake_graph: LakeGraph,
    spark_session: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    ordered: list[tuple[int, str, int]],
    known: dict[int, tuple[str | None, bool]],
    data: st.DataObject,
) -> None:
    orders = pl.DataFrame(
        [(number, *order) for number, order in enumerate(ordered)],
        schema={"order_id": pl.Int64, "customer_id": pl.Int64, "status": pl.String, "cents": pl.Int64},
        orient="row",
    )
    customers = pl.DataFrame(
        [(number, *told) for number, told in known.items()],
        schema={"customer_id": pl.Int64, "country": pl.String, "confirmed": pl.Boolean},
        orient="row",
    )
    lake = OrdersLake(neo4j_service, tmp_path_factory.mktemp("purge"), lake_graph)
    lake.make([orders[: len(orders) // 2], orders[len(orders) // 2 :]], customers, spark_session)
    before = {name: lake.rows(name) for name in ("orders", "customers", "country_totals", "top_orders")}
    selected = set(
        data.draw(st.lists(st.sampled_from([*before["orders"], *before["customers"]]), min_size=1, max_size=3))
    )

    certificate = lake.purge(lake.plan(sorted(selected)), SparkEngine(lambda: spark_session))

    left = {}
    for source in ("orders", "customers"):
        left[source] = {one: row for one, row in before[source].items() if one not in selected}
        assert lake.rows(source) == left[source]
    reports = {"country_totals": report_countries, "top_orders": report_top}
    for name, report in reports.items():
        expected = report(left["orders"].values(), left["customers"].values())
        found = lake.rows(name)
        keys = {one: tuple(row.get(column) for column in KEYS[name]) for one, row in found.items()}
        assert {keys[one]: filled(row, name) for one, row in found.items()} == expected
        assert len(found) == len(expected)
        stood = {tuple(row.get(column) for column in KEYS[name]): one for one, row in before[name].items()}
        assert all(stood.get(key, one) == one for one, key in keys.items())
        assert not {one for one, key in keys.items() if key not in stood} & before[name].keys()
    # A suite expects that every country is known, and one that there is such a column, which JSON leaves out if all
    # are null: where that is not so, the certificate says it.
    unknown = {name: [row.get("country") is None for row in lake.rows(name).values()] for name in reports}
    fails = {"country_totals": any(unknown["country_totals"]), "top_orders": {*unknown["top_orders"]} == {True}}
    unmet = {f"{lake.version(name).reference} meets its expectations" for name in reports if fails[name]}
    assert {finding.name for finding in certificate.findings if finding.passed is False} == unmet
    for one in lake.rows("top_orders"):
        inputs = {record.id for record in lake_graph.backward([one], depth=1).records}
        assert inputs
        assert not inputs & selected


KEYS = {"country_totals": ["country"], "top_orders": ["country", "place"]}


def filled(row: dict[str, Any], name: str) -> dict[str, Any]:
    """JSON leaves out what is null."""
    return row if name == "country_totals" else {"country": None, **row}
