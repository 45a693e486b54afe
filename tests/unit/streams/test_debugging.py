"""A result is made again from the last checkpoint before its inputs, and every operator is seen at work."""

from pathlib import Path
from typing import Any

import pytest

from provenance_store.errors import InputError
from provenance_store.streams.checkpoints import Checkpoints, forget
from provenance_store.streams.debugging import debug
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import Aggregate, Average, Filter, Process
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.windows import Trigger, Window

RUN = "debug-1"
MINUTE = Window("time", 60)
LARGE = Function("compare", {"field": "v", "comparison": ">", "value": 30})


@register("test.highest-yet")
def _highest(memory: Any, content: Any) -> Any:
    highest = max(content["count"], memory or 0)
    return highest, [{"count": content["count"], "highest": highest}]


def run(home: Path, *, query: StreamQuery, count: int = 60) -> tuple[Path, StreamRun]:
    arrivals = [
        Arrival("x", 10 * n, ("000000", n), 0, {"time": 10 * n, "v": float(n), "k": n % 3}) for n in range(count)
    ]
    batches = [(arrivals[first : first + 6], 10 * first + 30) for first in range(0, count, 6)]
    run_locally(home, home / "lake", query, RUN, batches, buckets=2, checkpoint_every=2)
    return home / "lake", StreamRun(home / "lake", RUN)


def watching(**fields: Any) -> StreamQuery:
    return StreamQuery(
        name="watch",
        sources=(Source(name="x", dataset="seen", topic="t"),),
        operators=(
            Aggregate(
                name="often",
                input="x",
                function=Function("count"),
                window=Window("time", 60),
                trigger=Trigger("time", 60),
            ),
            Process(name="highest", input="often", function=Function("test.highest-yet")),
        ),
        sinks=(Sink(stream="highest", dataset="out"),),
        **fields,
    )


def test_a_result_comes_back_from_a_checkpoint_with_its_inputs_alone(tmp_path: Path) -> None:
    lake, made = run(tmp_path, query=watching(by=("k",)))
    chosen = made.results().filter(made.results()["timestamp"] == 480)["id"][0]
    session = debug(tmp_path, lake, chosen)
    assert session.same
    assert session.given == "contributing"
    assert session.checkpoint is not None
    assert {one.id for one in session.sources} == set(made.backward([chosen]).inputs)
    assert session.events == len(session.sources) == 2
    assert [step.operator for step in session.steps] == ["often", "highest"]
    remembering = session.steps[-1]
    # What it remembered comes from the checkpoint: no input of before was given.
    assert remembering.before == {} or remembering.before != remembering.after
    assert remembering.outputs[0].content == session.content == {"count": 2, "highest": 2}
    assert all(one.contributes for window in session.steps[0].inputs for one in window)


def test_where_others_move_a_window_all_inputs_of_the_lane_are_given(tmp_path: Path) -> None:
    query = StreamQuery(
        name="counting",
        sources=(Source(name="x", dataset="seen", topic="t"),),
        operators=(
            Filter(
                name="large", input="x", function=Function("compare", {"field": "v", "comparison": ">", "value": 30})
            ),
            Average(name="mean", input="large", field="v", window=Window("length", 2), trigger=Trigger("events", 5)),
        ),
        sinks=(Sink(stream="mean", dataset="out"),),
    )
    lake, made = run(tmp_path, query=query)
    chosen = made.results()["id"][-1]
    session = debug(tmp_path, lake, chosen)
    assert session.same
    assert session.given == "lane"
    assert session.events > len(session.sources) == 2
    assert {one.id for one in session.sources} == set(made.backward([chosen]).inputs)
    assert [one.contributes for one in session.steps[-1].inputs[0]] == [True, True]


def test_without_checkpoints_a_replay_begins_at_the_beginning(tmp_path: Path) -> None:
    lake, made = run(tmp_path, query=watching(by=("k",)))
    assert Checkpoints(tmp_path, RUN, 0).size() + Checkpoints(tmp_path, RUN, 1).size() > 0
    forget(tmp_path, RUN)
    session = debug(tmp_path, lake, made.results()["id"][-1])
    assert session.checkpoint is None
    assert session.same


def test_an_input_that_is_gone_is_named(tmp_path: Path) -> None:
    lake, made = run(tmp_path, query=watching())
    chosen = made.results()["id"][0]
    for file in (lake / "seen" / RUN).glob("*.jsonl"):
        file.unlink()
    with pytest.raises(InputError, match="has no file"):
        debug(tmp_path, lake, chosen)


def test_of_a_cached_source_contents_come_from_its_cache_and_then_from_a_keeper(tmp_path: Path) -> None:
    query = watching(by=("k",))
    source = Source(name="x", dataset="seen", topic="t", cache=10_000)
    cached = StreamQuery(name="watch", sources=(source,), operators=query.operators, sinks=query.sinks, by=("k",))
    lake, made = run(tmp_path, query=cached)
    assert not (lake / "seen").exists()
    chosen = made.results()["id"][-1]
    links = made.backward([chosen])
    assert all(one.startswith("lake:seen/t/000000#") for one in links.inputs)
    with pytest.raises(InputError, match="in the cache and the topic no more"):
        debug(tmp_path, lake, chosen)

    from provenance_store.streams.cache import Cache

    def keeper(run: str, source: Source, places: Any) -> dict[tuple[str, int], bytes]:
        return Cache(tmp_path, run, source.name).read(places)

    assert debug(tmp_path, lake, chosen, keeper).same
    Cache(tmp_path, RUN, "x").trim(1)
    with pytest.raises(InputError, match="in the cache and the topic no more"):
        debug(tmp_path, lake, chosen, keeper)
