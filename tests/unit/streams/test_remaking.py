"""Keys that a purge drafted take the place of a run's, wherever it was killed on the way."""

from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.streams import remaking
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.folders import ASIDE, KEYS, read_facts, run_folder
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.runs import StreamRun

QUERY = StreamQuery(
    name="q", sources=(Source(name="x", dataset="in", topic="t"),), sinks=(Sink(stream="x", dataset="out"),)
)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    came = [Arrival("x", n, ("t-0", n), 0, {"time": n}) for n in range(3)]
    run_locally(tmp_path, tmp_path / "lake", QUERY, "r", [(came, 3)])
    made = remaking.Remaking(StreamRun(tmp_path / "lake", "r"), [0], versions={"out": ["r"]}, new="n.jsonl")
    assert not made.run(remaking.draft_of(tmp_path / "lake", "r", "p-1"))  # nothing went, so nothing changes
    return tmp_path / "lake"


@pytest.mark.parametrize("killed", ["before", "keys aside", "keys there", "again"])
def test_keys_are_switched_wherever_it_was_killed(lake: Path, killed: str) -> None:
    folder, draft = run_folder(lake, "r"), remaking.draft_of(lake, "r", "p-1")
    before = StreamRun(lake, "r").table("x")
    if killed in {"keys aside", "keys there"}:
        (folder / KEYS).rename(folder / ASIDE)
    if killed == "keys aside":
        with pytest.raises(InputError, match="replacing the assertions"):
            StreamRun(lake, "r").table("x")
    if killed == "keys there":
        draft.rename(folder / KEYS)
    if killed == "again":
        remaking.switch(lake, "r", "p-1")
    remaking.switch(lake, "r", "p-1")
    facts = read_facts(lake, "r")
    assert facts is not None
    assert facts.purged == ("p-1",)
    assert not draft.exists()
    assert not (folder / ASIDE).exists()
    assert sorted(path.name for path in (folder / KEYS / "x").iterdir()) == ["part-purged-000002.parquet"]
    assert StreamRun(lake, "r").table("x").equals(before)


def test_what_was_drafted_can_be_given_up(lake: Path) -> None:
    remaking.discard(lake, "r", "p-1")
    assert not remaking.draft_of(lake, "r", "p-1").exists()
    assert len(StreamRun(lake, "r").table("x")) == 3
