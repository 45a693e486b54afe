"""The questions that a person asks of stream runs, one after the other, as in paper 001's session with ItemMonitor."""

from pathlib import Path
from typing import Any

import pytest

from provenance_store.errors import InputError
from provenance_store.settings import Settings
from provenance_store.streams import service
from provenance_store.streams.cache import Cache
from provenance_store.streams.engine import Arrival
from provenance_store.streams.event import END
from provenance_store.streams.execution import run_locally
from provenance_store.streams.folders import Begun, Workshop
from provenance_store.streams.functions import Function
from provenance_store.streams.keeping import keeper_of
from provenance_store.streams.operators import Aggregate
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger, Window
from tests.item_monitor import LINES, RUN, monitor_items

COUNTED = StreamQuery(
    name="counted",
    sources=(Source(name="x", dataset="seen", topic="t", cache=1 << 20),),
    operators=(
        Aggregate(
            name="often", input="x", function=Function("count"), window=Window("time", 60), trigger=Trigger("time", 60)
        ),
    ),
    sinks=(Sink(stream="often", dataset="out"),),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return monitor_items(tmp_path_factory.mktemp("monitor"))


def abnormal(home: Path) -> service.Result:
    found = service.results(home / "lake", RUN, "item-warnings")
    return next(one for one in found if one.content["warning"] == "ABNORMAL")


def test_a_finished_run_is_told_with_what_it_read(home: Path) -> None:
    (job,) = service.jobs(home, home / "lake")
    assert (job.run, job.query, job.state, job.until) == (RUN, "item-monitor", "finished", END)
    assert job.read == ("item-lines/n200-s1",)
    assert job.results == ("item-visits", "item-warnings")
    assert (job.late, job.rejected) == (0, 0)


def test_results_are_the_newest_first_and_can_be_around_a_time(home: Path) -> None:
    lake = home / "lake"
    every = service.results(lake, RUN, limit=10_000)
    times = [one.time for one in every]
    assert times == sorted(times, reverse=True)
    assert service.results(lake, RUN, limit=3) == every[:3]
    one = abnormal(home)
    near = service.results(lake, RUN, "item-warnings", around=one.time, within=0)
    assert one in near
    assert {found.time for found in near} == {one.time}
    assert service.results(lake, RUN, around=0, within=1) == []
    assert all(found.content is None for found in service.results(lake, RUN, contents=False))
    with pytest.raises(InputError, match="writes no dataset 'nothing', but item-visits, item-warnings"):
        service.results(lake, RUN, "nothing")


def test_the_sources_of_the_papers_result_are_its_four_lines_with_their_checkpoint(home: Path) -> None:
    one = abnormal(home)
    assert one.content["visits"] == -2_147_483_639
    told = service.sources(home, home / "lake", one.id)
    assert told.exact
    assert told.note is None
    assert sorted(source.content["line"] for source in told.sources) == sorted(LINES)
    for source in told.sources:
        assert source.checkpoint is None or source.checkpoint < source.step
    assert any(source.checkpoint is not None for source in told.sources)
    hidden = service.sources(home, home / "lake", one.id, contents=False)
    assert [source.id for source in hidden.sources] == [source.id for source in told.sources]
    assert all(source.content is None for source in hidden.sources)


def test_its_replay_shows_where_the_sum_runs_over(home: Path) -> None:
    session = service.replay(home, home / "lake", abnormal(home).id)
    assert session.same
    window = next(step for step in session.steps if step.operator == "visits")
    added = sum(one.content["visits"] for one in window.inputs[0] if one.contributes)
    made = [one.content["visits"] for one in window.outputs if one.contributes]
    assert added == 2_147_483_657
    assert made == [-2_147_483_639]


def test_where_a_source_is_gone_all_that_may_have_been_is_told_and_why(tmp_path: Path) -> None:
    home = monitor_items(tmp_path)
    one = abnormal(home)
    (file,) = (home / "lake" / "item-lines").rglob("*.jsonl")
    file.unlink()
    told = service.sources(home, home / "lake", one.id)
    assert not told.exact
    assert told.note is not None
    assert "has no file" in told.note
    assert len(told.sources) > len(LINES)


def test_a_run_under_way_is_told_before_and_after_it_publishes(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, "counted-1", COUNTED)
    workshop.open(Begun(period=100))
    workshop.reject("000-000001", [b"{}", b"{}"])
    (job,) = service.jobs(tmp_path, tmp_path / "lake")
    assert (job.state, job.until, job.rejected, job.read) == ("running", None, 2, ())
    with pytest.raises(InputError, match="holds no assertions of stream run"):
        service.results(tmp_path / "lake", "counted-1")
    workshop.land("out", "counted-1.0", "000-000001", [b"{}"])
    workshop.publish(tmp_path / "lake", 250)
    (job,) = service.jobs(tmp_path, tmp_path / "lake")
    assert (job.state, job.until, job.rejected) == ("running", 250, 2)


def test_a_keeper_asks_the_cache_and_then_the_topic(tmp_path: Path) -> None:
    arrivals = [Arrival("x", 10 * n, ("000002", n), 0, {"time": 10 * n}) for n in range(12)]
    batches = [(arrivals[first : first + 3], 10 * first) for first in range(0, 12, 3)]
    run_locally(tmp_path, tmp_path / "lake", COUNTED, "counted-1", batches)
    asked: list[Any] = []

    def read(topic: str, places: Any) -> dict[tuple[int, int], bytes]:
        asked.append((topic, sorted(places)))
        return dict.fromkeys(places, b'{"time": 1}')

    keeper = keeper_of(Settings(home=tmp_path, lake=tmp_path / "lake"), read)
    (_, one) = service.results(tmp_path / "lake", "counted-1", limit=2)
    assert service.replay(tmp_path, tmp_path / "lake", one.id, keeper).same
    assert asked == []
    Cache(tmp_path, "counted-1", "x").trim(1)
    told = service.sources(tmp_path, tmp_path / "lake", one.id, keeper)
    assert asked[-1] == ("t", [(2, number) for number in range(1, 7)])
    assert [source.content for source in told.sources] == [{"time": 1}] * 6
