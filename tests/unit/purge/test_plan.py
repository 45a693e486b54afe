"""Stored plans: nobody alters one unseen, and its page says all of it and nothing else."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.purge import folders
from provenance_store.purge.page import write_page
from provenance_store.purge.plan import (
    Held,
    Plan,
    Step,
    StoredPlan,
    Topic,
    list_plans,
    open_plan,
    write_plan,
    write_tables,
)

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
STEP = Step(
    dataset="tweets", version="v1", policy="delete", run=None, dic=None, inputs=[], selected=2, reached=0, records=9
)
MADE = Step(
    dataset="counts",
    version="r1",
    policy="recompute",
    run="r1",
    dic="count",
    inputs=["tweets/v1"],
    selected=0,
    reached=1,
    records=4,
    reads=3,
)
ROWS = pl.DataFrame(
    {
        "id": ["lake:tweets/v1/f#9", "lake:counts/r1/f#0", "lake:tweets/v1/f#0"],
        "dataset": ["tweets", "counts", "tweets"],
        "version": ["v1", "r1", "v1"],
        "file": ["f", "f", "f"],
        "position": [9, 0, 0],
        "selected": [True, False, True],
    }
)
INPUTS = pl.DataFrame(
    {
        "dataset": ["counts"],
        "version": ["r1"],
        "id": ["lake:tweets/v1/f#20"],
        "of_dataset": ["tweets"],
        "of_version": ["v1"],
        "file": ["f"],
        "position": [20],
    }
)


def plan_of(**told) -> Plan:
    facts = {
        "selection": "s-0123456789abcdef",
        "made": NOW.isoformat(),
        "by": "eve",
        "expires": (NOW + timedelta(days=7)).isoformat(),
        "verdict": "complete",
        "incomplete": [],
        "holds": [],
        "gone": [],
        "steps": [STEP, MADE],
        "topics": [],
        "state": {},
        "records_digest": "",
        "inputs_digest": "",
    }
    return Plan(**facts | told)


def store(lake: Path, **told) -> StoredPlan:
    with folders.new_folder(lake, "plans") as folder:
        records_digest, inputs_digest = write_tables(folder, ROWS, INPUTS)
        plan = plan_of(records_digest=records_digest, inputs_digest=inputs_digest, **told)
        return write_plan(folder, plan, write_page(plan))


def test_a_plan_is_opened_as_it_was_made(tmp_path: Path) -> None:
    made = store(tmp_path)
    opened = open_plan(tmp_path, made.id)
    assert opened == made
    assert opened.digest.startswith(made.id.removeprefix("p-"))
    assert opened.records()["id"].to_list() == ["lake:counts/r1/f#0", "lake:tweets/v1/f#0", "lake:tweets/v1/f#9"]
    assert opened.records(STEP)["position"].to_list() == [0, 9]
    assert opened.inputs(MADE)["position"].to_list() == [20]
    assert opened.inputs(STEP).height == 0
    assert list_plans(tmp_path) == [made.id]
    assert [path.name for path in made.path.parent.iterdir()] == [made.id]


@pytest.mark.parametrize("file", ["plan.json", "records.parquet", "inputs.parquet", "plan.html"])
def test_an_altered_plan_is_refused(tmp_path: Path, file: str) -> None:
    made = store(tmp_path)
    path = made.path / file
    content = path.read_bytes()
    for altered in (content.replace(b"tweets", b"others") + b" ", b""):
        path.write_bytes(altered)
        with pytest.raises(InputError, match=f"was altered: {file}"):
            open_plan(tmp_path, made.id)
    path.unlink()
    with pytest.raises(InputError, match=f"was altered: {file}"):
        open_plan(tmp_path, made.id)


def test_a_plan_of_another_format_is_refused(tmp_path: Path) -> None:
    made = store(tmp_path, format=99)
    with pytest.raises(InputError, match="format 99"):
        open_plan(tmp_path, made.id)


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no plan p-0123456789abcdef"):
        open_plan(tmp_path, "p-0123456789abcdef")
    with pytest.raises(InputError, match="is not the id of a plan"):
        open_plan(tmp_path, "s-0123456789abcdef")


def test_a_plan_expires() -> None:
    assert not plan_of().has_expired(NOW + timedelta(days=6))
    assert plan_of().has_expired(NOW + timedelta(days=7))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data) -> None:
        self.texts.append(data)


def test_the_page_tells_everything_and_loads_nothing() -> None:
    nasty = "<script>alert('x')</script>&\"'"
    plan = plan_of(
        by=nasty,
        incomplete=[f"doubt {nasty}"],
        holds=[Held("ledger", nasty, f"trial {nasty}", 5)],
        gone=["old/v0"],
        topics=[Topic("headwater.count", "2026-03-20T00:00:00+00:00"), Topic("headwater.other", None)],
        steps=[STEP, msgspec.structs.replace(MADE, whole=f"because {nasty}", run=nasty)],
    )
    page = _Page()
    page.feed(write_page(plan))
    said = "".join(page.texts)
    for told in (
        "tweets/v1",
        "counts/r1",
        f"doubt {nasty}",
        f"trial {nasty}",
        f"because {nasty}",
        "old/v0",
        "2026-03-20",
    ):
        assert told in said
    assert "not known" in said
    assert "svg" in page.tags
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert not [name for name, _ in page.attributes if name in {"src", "href"} or name.startswith("on")]


def test_a_page_of_a_plan_that_may_do_nothing() -> None:
    assert "Held" in write_page(plan_of(steps=[], holds=[Held("ledger", "court", "trial", 5)]))
