"""What a plan knows of stream runs: whose records took part where, what cannot be made anew, and what goes on."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Catalogue
from provenance_store.purge.standing import STANDING
from provenance_store.purge.streams import StreamRuns
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.folders import Workshop, read_facts, write_facts
from provenance_store.streams.functions import Function
from provenance_store.streams.operators import Map, Process
from provenance_store.streams.query import Sink, Source, StreamQuery
from tests.handmade import tell

QUERY = StreamQuery(
    name="q",
    sources=(Source(name="x", dataset="events", topic="plant"),),
    operators=(Map(name="y", input="x", function=Function("identity")),),
    sinks=(Sink(stream="y", dataset="made"), Sink(stream="x", dataset="copied")),
    by=("who",),
)


class World:
    def __init__(self, home: Path, query: StreamQuery = QUERY, **policies: str) -> None:
        self.home, self.lake = home, home / "lake"
        for dataset in ("made", "copied"):
            policy = policies.get(dataset, "recompute")
            tell(self.lake, f'[{dataset}]\nformat = "jsonl"\npolicy = {{ do = "{policy}" }}\n')
        came = [Arrival("x", n, ("t-0", n), 0, {"time": n, "who": "ab"[n % 2]}) for n in range(4)]
        run_locally(home, self.lake, query, "r", [(came, 2)])

    def touching(self, *places: tuple[str, int]) -> StreamRuns:
        rows = [(f"{file}#{at}", "events", "r", file, at) for file, at in places]
        return StreamRuns(self.lake, self.home, pl.DataFrame(rows, schema=STANDING, orient="row"))

    def check(self) -> None:
        self.touching(FIRST).check_can_be_remade("r", Catalogue.load(self.lake))


# Two events took part in the first step, one of each lane.
FIRST, OTHER = ("part-000-000001.jsonl", 0), ("part-000-000001.jsonl", 21)


def test_lanes_are_those_in_which_touched_records_took_part(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.touching(FIRST).lanes("r") == [0]
    assert world.touching(FIRST, OTHER).lanes("r") == [0, 1]
    assert world.touching(FIRST).readers == ["r"]
    assert world.touching(FIRST).topics == {"plant"}
    strange = world.touching(("part-000-000009.jsonl", 0))
    assert (strange.lanes("r"), strange.readers, strange.topics) == ([], [], set())
    assert not list(world.touching(FIRST).doubts(()))
    world.check()


def test_a_run_that_goes_on_is_told_of_and_not_made_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    facts = read_facts(world.lake, "r")
    assert facts is not None
    write_facts(world.lake, msgspec.structs.replace(facts, until=2))
    with pytest.raises(InputError, match="goes on"):
        world.check()
    (doubt,) = world.touching(FIRST).doubts(())
    assert "Run r of q goes on and reads events" in doubt
    # One that has published nothing is known by its workshop.
    Workshop(tmp_path, "begun", QUERY).open()
    assert [doubt.split()[1] for doubt in world.touching(FIRST).doubts(())] == ["begun", "r"]
    assert world.touching(FIRST).readers == ["begun", "r"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sources": (Source(name="x", dataset="events", topic="plant", cache=100),)}, "never landed"),
        ({"operators": (Map(name="y", input="x", function=Function("identity"), delay=None),)}, "was measured"),
    ],
)
def test_what_would_have_been_made_must_be_knowable(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    world = World(tmp_path, msgspec.structs.replace(QUERY, **changed))
    with pytest.raises(InputError, match=why):
        world.check()


def test_all_sinks_are_made_anew_or_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'copied' is not to be recomputed"):
        World(tmp_path, copied="delete").check()


def test_what_is_remembered_of_a_record_is_a_doubt_unless_it_is_made_anew(tmp_path: Path) -> None:
    remembers = Process(name="y", input="x", function=Function("test.never-called"))
    world = World(tmp_path)
    path = world.lake / "_streams" / "r" / "query.json"
    path.write_bytes(msgspec.structs.replace(QUERY, operators=(remembers,)).to_json())
    (doubt,) = world.touching(FIRST).doubts(())
    assert "'y' in run r remembers" in doubt
    assert not list(world.touching(FIRST).doubts({"r"}))
