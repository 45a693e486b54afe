"""Keys that a purge drafted take the place of a run's, wherever it was killed on the way."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.lake.drafts import begin_draft, switch
from provenance_store.lake.layout import list_versions, version_of
from provenance_store.lake.records import lines_of
from provenance_store.lake.rewriting import LineEdit, rewrite
from provenance_store.streams import remaking
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import Execution, run_locally
from provenance_store.streams.folders import ASIDE, KEYS, Begun, Workshop, read_facts, run_folder
from provenance_store.streams.functions import Function
from provenance_store.streams.operators import Aggregate
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.remaking import Changes
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.windows import Trigger, Window

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


SEGMENTS = StreamQuery(
    name="q",
    sources=(Source(name="x", dataset="in", topic="t"),),
    operators=(
        Aggregate(
            name="y",
            input="x",
            function=Function("sum", {"field": "v"}),
            window=Window("length", 3),
            trigger=Trigger("events", 2),
        ),
    ),
    sinks=(Sink(stream="y", dataset="out"),),
)


def run_in_segments(home: Path, events: Sequence[int]) -> Path:
    """Numbers, each an event at its own time; published every ten milliseconds of event time."""
    workshop, lake = Workshop(home, "r", SEGMENTS), home / "lake"
    workshop.open(Begun(period=10))
    execution = Execution(workshop)
    state = None
    for until in range(5, 45, 5):
        lanes = execution.lanes(0, state)
        came = [one for one in events if until - 5 <= one < until]
        lanes.add(Arrival("x", one, ("t-0", one), 0, {"time": one, "v": one}) for one in came)
        execution.step(lanes, until)
        state = lanes.put_away()
        workshop.publish(lake, until)
    workshop.finish(lake)
    return lake


def read(lake: Path, dataset: str) -> dict[str, dict[str, bytes]]:
    versions = list_versions(lake, dataset)
    return {version.name: dict(lines_of(version)) for version in versions}


def test_segments_change_from_the_one_of_the_event_on(tmp_path: Path) -> None:
    events = [1, 2, 4, 11, 12, 13, 15, 22, 25, 26, 31, 33, 38]
    lake = run_in_segments(tmp_path / "all", events)
    expected = read(run_in_segments(tmp_path / "without", [one for one in events if one != 13]), "out")
    before = read(lake, "out")
    landed = [(name, *record) for name, lines in read(lake, "in").items() for record in lines.items()]
    gone = next((name, one) for name, one, line in landed if b":13," in line)
    version = version_of(lake, "in", gone[0])
    draft = begin_draft(version, "p-1")
    file, position = gone[1].rsplit("/", 1)[1].split("#")
    rewrite(version, file, LineEdit(removed=[int(position)]), draft)
    switch(version, draft)
    later = [name for name in before if name >= gone[0]]
    made = remaking.Remaking(StreamRun(lake, "r"), [0], versions={"out": later}, new="n.jsonl")
    changes = made.run(remaking.draft_of(lake, "r", "p-1"))
    assert {name for _, name in changes} <= set(later)
    after: Counter[bytes] = Counter()
    for name, lines in before.items():
        told = changes.get(("out", name), Changes())
        for one, line in lines.items():
            file, position = one.rsplit("/", 1)[1].split("#")
            if int(position) not in told.removed.get(file, ()):
                after[told.changed.get(file, {}).get(int(position), line)] += 1
        after.update(told.appended)
    assert after == Counter(line for lines in expected.values() for line in lines.values())
    refused = remaking.Remaking(StreamRun(lake, "r"), [0], versions={"out": later[1:]}, new="n.jsonl")
    with pytest.raises(InputError, match="plan anew"):
        refused.run(remaking.draft_of(lake, "r", "p-1"))
