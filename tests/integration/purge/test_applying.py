"""Plans followed in the lake: every format and policy, again, one at a time, and never where they may not be."""

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import layout
from provenance_store.lake.contents import all_rows
from provenance_store.lake.layout import Version
from provenance_store.lake.records import lines_of
from provenance_store.model.files import in_turn
from provenance_store.model.ids import file_prefix
from provenance_store.purge import folders
from provenance_store.purge.apply import apply
from provenance_store.purge.approval import approve
from provenance_store.purge.certificate import Certificate, check_chain
from provenance_store.purge.plan import StoredPlan
from provenance_store.purge.planning import make_plan
from provenance_store.purge.selection import select_ids
from provenance_store.settings import Settings
from spark_apps.purge.engine import SparkEngine
from tests.handmade import tell

CATALOGUE = """
[people]
format = "jsonl"
policy = { do = "redact", null = ["street"], replace = { name = "removed" } }
[letters]
format = "csv"
columns = ["sender", "street"]
policy = { do = "redact", replace = { sender = "removed" } }
[notes]
format = "text"
policy = { do = "delete" }
[visits]
format = "parquet"
policy = { do = "redact", null = ["name"] }
[rooms]
format = "parquet"
policy = { do = "delete" }
"""
LINES = {
    "people": [b'{"name":"Ann","street":"Long 1","n":1}', b'{"name":"Bo","street":"Short 2","n":2}'],
    "letters": [b'"Ann, of Long",1', b'"Bo, of Short",2'],
    "notes": [b"Ann was here", b"Bo was not"],
}
ROWS = {
    "visits": pl.DataFrame({"name": ["Ann", "Bo"], "n": [1, 2]}),
    "rooms": pl.DataFrame({"name": ["Ann", "Bo"], "n": [1, 2]}),
}


@pytest.fixture(scope="module")
def lake_graph(neo4j_service: Settings) -> Iterator[LakeGraph]:
    with LakeGraph(neo4j_service) as graph:
        yield graph


class Lake:
    """Ann and Bo in every format; Ann is selected everywhere."""

    def __init__(self, settings: Settings, graph: LakeGraph) -> None:
        self.settings, self.graph = settings, graph
        tell(settings.lake, CATALOGUE)
        self.version = f"v{uuid.uuid4().hex[:12]}"
        for dataset, lines in LINES.items():
            with layout.new_version(self.of(dataset), {}) as folder:
                (folder / "part-0").write_bytes(b"".join(line + b"\n" for line in lines))
        for dataset, rows in ROWS.items():
            with layout.new_version(self.of(dataset), {}) as folder:
                rows.write_parquet(folder / "part-0.parquet")

    def of(self, dataset: str) -> Version:
        return layout.version_of(self.settings.lake, dataset, self.version)

    def contents(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {name: dict(lines_of(self.of(name))) for name in LINES}
        for name in ROWS:
            prefix = file_prefix(name, self.version, "part-0.parquet")
            found[name] = {
                f"{prefix}{at}": row
                for positions, batch in all_rows(self.of(name), "part-0.parquet")
                for at, row in zip(positions.tolist(), batch.to_pylist(), strict=True)
            }
        return found

    def plan(self, *datasets: str, valid: timedelta = timedelta(days=1)) -> StoredPlan:
        chosen = [next(iter(self.contents()[name])) for name in datasets or [*LINES, *ROWS]]
        selection = select_ids(self.settings, chosen, by="engineer")
        return make_plan(self.settings, self.graph, selection.id, by="engineer", valid=valid)

    def approve(self, plan: StoredPlan) -> StoredPlan:
        approve(self.settings, self.graph, plan.id, by="officer")
        return plan

    def apply(self, plan: StoredPlan) -> Certificate:
        def no_spark() -> None:
            raise AssertionError("Spark is not needed for so little")

        return apply(self.settings, self.graph, plan.id, SparkEngine(no_spark))


@pytest.fixture
def lake(neo4j_service: Settings, lake_graph: LakeGraph, tmp_path: Path) -> Lake:
    # Recordings, so that no broker is asked here.
    places = {"lake": tmp_path / "lake", "recordings": tmp_path / "recordings"}
    return Lake(neo4j_service.model_copy(update=places), lake_graph)


def test_every_format_and_policy_and_again(lake: Lake) -> None:
    before = lake.contents()
    plan = lake.approve(lake.plan())
    certificate = lake.apply(plan)
    assert certificate.passed
    after = lake.contents()
    second = {name: list(before[name])[1] for name in before}
    assert [*after["people"].values()] == [b'{"name":"removed","street":null,"n":1}', LINES["people"][1]]
    assert [*after["letters"].values()] == [b"removed,1", LINES["letters"][1]]
    assert after["notes"] == {second["notes"]: LINES["notes"][1]}
    assert [*after["visits"].values()] == [{"name": None, "n": 1}, {"name": "Bo", "n": 2}]
    assert after["rooms"] == {second["rooms"]: {"name": "Bo", "n": 2}}
    for name in ("people", "letters", "visits"):
        assert after[name].keys() == before[name].keys()

    assert lake.apply(plan) == certificate
    assert lake.contents() == after
    # What is left after one purge is purged by the next, under the ids it always had.
    chain = check_chain(lake.settings.lake)
    assert lake.apply(lake.approve(lake.plan("notes"))).previous == chain.last
    assert lake.contents()["notes"] == {}


def test_a_plan_nobody_approved_is_not_followed(lake: Lake) -> None:
    before = lake.contents()
    plan = lake.plan()
    with pytest.raises(InputError, match="is not approved"):
        lake.apply(plan)
    assert lake.contents() == before


def test_an_altered_plan_is_not_followed(lake: Lake) -> None:
    before = lake.contents()
    plan = lake.approve(lake.plan())
    file = plan.path / "plan.json"
    file.write_text(file.read_text().replace("redact", "delete"))
    with pytest.raises(InputError, match="altered"):
        lake.apply(plan)
    assert lake.contents() == before


def test_a_plan_that_expired_after_its_approval_is_not_followed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = lake.approve(lake.plan())
    monkeypatch.setattr("provenance_store.purge.plan.Plan.has_expired", lambda _: True)
    with pytest.raises(InputError, match="expired on"):
        lake.apply(plan)


def test_a_plan_that_the_lake_has_left_behind_is_not_followed(lake: Lake) -> None:
    one, other = lake.approve(lake.plan()), lake.approve(lake.plan("notes"))
    lake.apply(other)
    with pytest.raises(InputError, match="the lake has moved on"):
        lake.apply(one)


def test_of_two_purges_of_a_dataset_one_waits(lake: Lake) -> None:
    before = lake.contents()
    plan = lake.approve(lake.plan("notes", "rooms"))
    with ExitStack() as held:
        held.enter_context(a_purge_of(lake, "rooms"))
        with pytest.raises(InputError, match="Another purge of dataset 'rooms' is running"):
            lake.apply(plan)
        assert lake.contents() == before
    with a_purge_of(lake, "visits"):
        assert lake.apply(plan).passed


def a_purge_of(lake: Lake, dataset: str) -> AbstractContextManager[None]:
    return in_turn(lake.settings.lake / folders.ROOT / "locks" / dataset, wait=False)
