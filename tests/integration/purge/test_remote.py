"""Lakes on HDFS and S3 are purged as one in a folder is: the same records go, and the others keep their ids."""

import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import catalogue, layout
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.checking import find_faults
from provenance_store.lake.contents import all_rows
from provenance_store.lake.records import lines_of
from provenance_store.lake.steady import SWITCHING
from provenance_store.model.files import write_whole
from provenance_store.purge import folders
from provenance_store.purge.again import verify_again
from provenance_store.purge.apply import apply
from provenance_store.purge.approval import approve
from provenance_store.purge.certificate import check_chain, read_all
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import read_ids, select_ids, select_keys
from provenance_store.settings import Settings
from provenance_store.storage.paths import staged
from spark_apps.purge import engine
from spark_apps.purge.engine import SparkEngine
from spark_apps.purge.select import select_where
from tests.dying import DeadError, dying_after
from tests.purging import OrdersLake, PurgedLake, TwitterLake, report_countries, report_top

TWEETED = [["#rain #sun", "#Sun", "dry"], ["#fog #rain", "Ünïcode #schnee"], ["#rain"]]
CATEGORIES = {"rain": "wet", "fog": "wet", "schnee": "wet", "sun": "dry"}
TWITTER = ("tweets", "categories", "hashtag_counts", "category_totals")


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


@pytest.fixture(params=["hdfs", "s3"])
def root(request: pytest.FixtureRequest, spark_session: SparkSession) -> Iterator[Path]:
    place: Path = request.getfixturevalue(f"{request.param}_root")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "s3":  # Spark was started before the server, and its workers must know it
            for name, value in request.getfixturevalue("s3_environment").items():
                patch.setitem(spark_session.sparkContext.environment, name, value)
        yield place / uuid.uuid4().hex


def make_twitter(base: Settings, folder: Path, graph: LakeGraph) -> TwitterLake:
    lake = TwitterLake(base, folder, graph)
    numbers = count()
    files = [
        [
            msgspec.json.encode(
                {"id": str(next(numbers)), "time": "2026-01-02T03:04:05Z", "handle": "ann", "text": text}
            )
            for text in texts
        ]
        for texts in TWEETED
    ]
    lake.make(files, [msgspec.json.encode({"hashtag": tag, "category": name}) for tag, name in CATEGORIES.items()])
    return lake


def places(lake: PurgedLake, ids: list[str]) -> list[str]:
    """Ids without the number of the lake."""
    return [one.replace(f"v{lake.number}/", "v/").replace(f"-{lake.number}/", "-/") for one in ids]


def contents(lake: TwitterLake) -> dict[str, dict[str, bytes]]:
    return {name: dict(zip(places(lake, list(read)), read.values(), strict=True)) for name, read in read_all_of(lake)}


def read_all_of(lake: TwitterLake) -> list[tuple[str, dict[str, bytes]]]:
    return [(name, lake.read(name)) for name in TWITTER]


def selected_of(lake: TwitterLake) -> list[str]:
    return [*list(lake.read("tweets"))[:2], *list(lake.read("categories"))[2:3]]


def test_twitter(
    neo4j_service: Settings,
    lake_graph: LakeGraph,
    spark_session: SparkSession,
    tmp_path: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local, remote = (make_twitter(neo4j_service, tmp_path, lake_graph) for _ in range(2))
    remote.move(root)
    assert list(find_faults(remote.settings.lake)) == list(find_faults(local.settings.lake)) == []
    assert contents(remote) == contents(local)
    # Files are written by Spark's workers.
    monkeypatch.setattr(engine, "_LITTLE", -1)
    plans = [lake.plan(selected_of(lake)) for lake in (local, remote)]
    certificates = [
        lake.purge(plan, SparkEngine(lambda: spark_session)) for lake, plan in zip((local, remote), plans, strict=True)
    ]
    assert contents(remote) == contents(local)
    assert {name: len(read) for name, read in contents(remote).items()} == {
        "tweets": 4,
        "categories": 3,
        "hashtag_counts": 3,
        "category_totals": 1,
    }
    ours, theirs = ([(one.name.split("/")[0], one.passed) for one in made.findings] for made in certificates)
    assert theirs == ours
    assert False not in {passed for _, passed in theirs}
    assert [one.grown for one in certificates[1].done] == [one.grown for one in certificates[0].done]

    # What is kept of it lies in the lake, and can be asked again.
    assert apply(remote.settings, lake_graph, plans[1].id, SparkEngine(lambda: spark_session)) == certificates[1]
    assert verify_again(remote.settings, lake_graph, "1").passed
    assert check_chain(remote.settings.lake).faults == []
    assert list(read_all(remote.settings.lake)) == [certificates[1]]
    kept = sorted(path.name for path in (remote.settings.lake / folders.ROOT / "plans" / plans[1].id).iterdir())
    assert kept == [
        "approval.json",
        "fingerprints.parquet",
        "inputs.parquet",
        "journal.json",
        "plan.html",
        "plan.json",
        "records.parquet",
    ]
    hidden = [name for name, _ in remote.settings.lake.walk_files() if "/." in name]  # type: ignore[attr-defined]
    assert hidden == []


def test_a_purge_that_dies_again_and_again_ends_as_one_that_does_not(
    neo4j_service: Settings, lake_graph: LakeGraph, spark_session: SparkSession, tmp_path: Path, root: Path
) -> None:
    local, remote = (make_twitter(neo4j_service, tmp_path, lake_graph) for _ in range(2))
    remote.move(root)
    local.purge(local.plan(selected_of(local)), SparkEngine(lambda: spark_session))
    plan = remote.plan(selected_of(remote))
    approve(remote.settings, lake_graph, plan.id, by="officer")
    seen: set[str] = set()
    for step in count(1):
        try:
            with dying_after(step):
                certificate = apply(remote.settings, lake_graph, plan.id, SparkEngine(lambda: spark_session))
            break
        except DeadError:
            for dataset in TWITTER:
                seen |= {dataset} if (remote.version(dataset).path / SWITCHING).exists() else set()
    assert seen, "it died while a version was switched"
    assert contents(remote) == contents(local)
    assert False not in {finding.passed for finding in certificate.findings}


def test_orders_made_anew_as_a_whole(
    neo4j_service: Settings, lake_graph: LakeGraph, spark_session: SparkSession, tmp_path: Path, root: Path
) -> None:
    orders = pl.DataFrame({"order_id": range(8), "customer_id": [0, 1] * 4, "status": ["paid"] * 8, "cents": range(8)})
    customers = pl.DataFrame({"customer_id": [0, 1], "country": ["AT", "BR"], "confirmed": [True, True]})
    lake = OrdersLake(neo4j_service, tmp_path, lake_graph)
    lake.make([orders[:4], orders[4:]], customers, spark_session)
    lake.move(root)
    before = lake.rows("orders")
    chosen = next(one for one, row in before.items() if row["order_id"] == 7)
    certificate = lake.purge(lake.plan([chosen]), SparkEngine(lambda: spark_session))
    left = {one: row for one, row in before.items() if one != chosen}
    assert lake.rows("orders") == left
    for name, report, keys in (
        ("country_totals", report_countries, ["country"]),
        ("top_orders", report_top, ["country", "place"]),
    ):
        expected = report(left.values(), lake.rows("customers").values())
        assert {tuple(row[key] for key in keys): row for row in lake.rows(name).values()} == expected
    assert [finding for finding in certificate.findings if finding.passed is False] == []


PEOPLE = """
[people]
format = "csv"
columns = ["id", "name", "town"]
key = ["id"]
personal = ["name"]
policy = { do = "redact", null = ["town"], replace = { name = "nobody" } }

[visits]
format = "parquet"
key = ["visit"]
policy = { do = "delete" }

[notes]
format = "text"
policy = { do = "delete" }
"""


def make_people(root: Path, version: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    write_whole(root / catalogue.FILE, PEOPLE.encode())
    files = {
        "people": {"a.csv": b"1,Ann,Oslo\n2,Bob,Rome\n", "day=1/b.csv": b'3,"Cy, Jr",Bonn\n1,Ann,"Bergen"\n'},
        "notes": {"n.txt.gz": b"one\ntwo\nthree\n"},
    }
    for dataset, named in files.items():
        for name, content in named.items():
            path = layout.version_of(root, dataset, version).path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with staged(path) as file, pa.output_stream(str(file)) as out:
                out.write(content)
    path = layout.version_of(root, "visits", version).path / "v.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with staged(path) as file:
        pl.DataFrame({"visit": range(6), "who": ["Ann", "Bob"] * 3}).write_parquet(file, row_group_size=2)


def purge_people(settings: Settings, graph: LakeGraph, spark: SparkSession, version: str) -> list[list[str]]:
    """Three purges, selected in three ways; the selected ids."""
    chosen = [
        select_keys(settings, "people", [("3",)], by="engineer"),
        select_where(spark, settings, "visits", "who = 'Ann' AND visit > 1", by="engineer"),
        select_ids(settings, [f"lake:notes/{version}/n.txt.gz#4"], by="engineer"),
        select_where(spark, settings, "people", "town LIKE 'B%'", by="engineer"),
    ]
    ids = []
    for selection in chosen:
        ids.append([one.replace(version, "v") for one in read_ids(settings.lake, selection.id)])
        plan = make_plan(settings, graph, selection.id, by="engineer")
        approve(settings, graph, plan.id, by="officer")
        certificate = apply(settings, graph, plan.id, SparkEngine(lambda: spark))
        assert [finding.name for finding in certificate.findings if finding.passed is False] == []
    return ids


def read_people(root: Path, version: str) -> list[tuple[str, object]]:
    lines = [pair for name in ("people", "notes") for pair in lines_of(layout.version_of(root, name, version))]
    visits = layout.version_of(root, "visits", version)
    rows: list[tuple[str, object]] = []
    for stand, batch in all_rows(visits, "v.parquet"):
        rows += zip(map(str, stand.tolist()), batch.to_pylist(), strict=True)
    return [(one.replace(version, "v"), record) for one, record in [*lines, *rows]]


def test_every_format_and_way_to_select(
    neo4j_service: Settings, lake_graph: LakeGraph, spark_session: SparkSession, tmp_path: Path, root: Path
) -> None:
    lakes = {}
    for lake in (tmp_path / "lake", root):
        settings = neo4j_service.model_copy(
            update={"lake": lake, "recordings": tmp_path / "recordings", "home": tmp_path / "home"}
        )
        version = uuid.uuid4().hex[:8]
        make_people(lake, version)
        ids = purge_people(settings, lake_graph, spark_session, version)
        lakes[lake] = ids, read_people(lake, version)
    local, remote = lakes.values()
    assert remote == local
    assert [line for one, line in remote[1] if one.startswith("lake:people")] == [
        b"1,Ann,Oslo",
        b"2,Bob,Rome",
        b"3,nobody,",
        b"1,nobody,",
    ]
    # Copies that Spark read are gone.
    assert list((tmp_path / "home").rglob("selecting-*")) == []


def test_what_is_refused(neo4j_service: Settings, lake_graph: LakeGraph, tmp_path: Path, root: Path) -> None:
    version = uuid.uuid4().hex[:8]
    settings = neo4j_service.model_copy(update={"lake": root, "recordings": tmp_path, "home": tmp_path / "home"})
    make_people(root, version)
    selection = select_ids(settings, [f"lake:notes/{version}/n.txt.gz#4"], by="engineer")
    assert select_ids(settings, [f"lake:notes/{version}/n.txt.gz#4"], by="engineer") == selection
    plan = make_plan(settings, lake_graph, selection.id, by="engineer")
    folder = layout.version_of(root, "notes", version).path
    write_whole(folder / "more.txt", b"four\n")
    with pytest.raises(InputError, match="is void: the lake has moved on"):
        approve(settings, lake_graph, plan.id, by="officer")
    plan = make_plan(settings, lake_graph, selection.id, by="engineer")
    approve(settings, lake_graph, plan.id, by="officer")
    with pytest.raises(InputError, match="was approved by officer"):
        approve(settings, lake_graph, plan.id, by="another")
    write_whole(plan.path / "records.parquet", b"altered")
    with pytest.raises(InputError, match="was altered"):
        approve(settings, lake_graph, plan.id, by="officer")
    assert Catalogue.load(root).of("notes").format == "text"
