"""A run that lands: results and first inputs are records, assertions stand beside them, and results come back."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError
from provenance_store.lake.layout import list_datasets, resolve
from provenance_store.settings import load_settings
from provenance_store.streams.again import make_again
from provenance_store.streams.engine import Arrival
from provenance_store.streams.execution import run_locally
from provenance_store.streams.folders import Workshop
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import Average, Map
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.runs import StreamRun
from provenance_store.streams.windows import Trigger, Window

QUERY = StreamQuery(
    name="means",
    sources=(Source(name="x", dataset="landed", topic="readings"),),
    operators=(
        Map(name="rounded", input="x", function=Function("ceil", {"field": "v"})),
        Average(name="y", input="rounded", field="v", window=Window("length", 3), trigger=Trigger("events", 3)),
    ),
    sinks=(Sink(stream="y", dataset="means"),),
)
RESULT = "lake:means/r1/part-000-000001.jsonl#0"


def arrivals(count: int) -> list[Arrival]:
    return [Arrival("x", 10 * n, ("000000", n), 2, {"time": 10 * n, "v": n + 0.5}) for n in range(count)]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    run_locally(tmp_path / "home", root, QUERY, "r1", [(arrivals(7), 45), ([], 50)])
    return root


def test_results_and_what_a_topic_brought_are_versions_and_nothing_is_left_of_the_work(lake: Path) -> None:
    assert list_datasets(lake) == ["landed", "means"]
    landed = [json.loads(line) for file in resolve(lake, "landed/r1").files() for line in file.read_text().splitlines()]
    assert [one["v"] for one in landed] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    first = json.loads((lake / "means/r1/part-000-000001.jsonl").read_text().splitlines()[0])
    assert first == {"timestamp": 20, "sequence": 1, "stream": "y", "delay": 0, "content": {"v": 2.0}}
    assert not list((lake.parent / "home" / "streams").iterdir())
    # Neither the map's keys nor the average's are stored for their own sake: they follow.
    assert sorted(path.name for path in (lake / "_streams/r1/keys").iterdir()) == ["x", "y@means"]


def test_a_result_is_traced_to_landed_records(lake: Path) -> None:
    links = StreamRun(lake, "r1").backward([RESULT])
    contents = StreamRun(lake, "r1").contents
    assert len(links) == 3
    assert all(one.startswith("lake:landed/r1/part-000-000001.jsonl#") for one in links.inputs)
    assert all(links.exact)
    assert [one["v"] for one in contents("x", np.array([2, 0]))] == [2.5, 0.5]


def test_a_result_comes_back_the_same_until_a_first_input_changes(lake: Path) -> None:
    assert not make_again(lake, [RESULT]).different
    landed = lake / "landed/r1/part-000-000001.jsonl"
    landed.write_text(landed.read_text().replace("2.5", "9.5"))
    assert make_again(lake, [RESULT]).different == [RESULT]


def test_the_command_line_replays_and_describes(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_LAKE", str(lake))
    load_settings.cache_clear()
    replayed = CliRunner().invoke(app, ["streams", "replay", RESULT, "--json"])
    told = json.loads(replayed.stdout)
    assert [row["stream"] for row in told["table"]] == ["x", "rounded", "y"]
    assert told["different"] == []
    (tmp_path / "q.json").write_bytes(QUERY.to_json())
    described = json.loads(CliRunner().invoke(app, ["streams", "describe", str(tmp_path / "q.json"), "--json"]).stdout)
    assert [(one["stream"], one["mapping"], one["stored"]) for one in described] == [
        ("rounded", "constant", False),
        ("y", "constant", False),
    ]
    load_settings.cache_clear()


def test_a_run_belongs_to_one_description(tmp_path: Path) -> None:
    Workshop(tmp_path, "r", QUERY).open()
    other = StreamQuery(name="other", sources=QUERY.sources)
    with pytest.raises(InputError, match="another description"):
        Workshop(tmp_path, "r", other).open()


def test_finishing_again_after_a_crash_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed once the first of its versions is there, a run is taken up with the rest."""
    from provenance_store.streams import folders

    published = []

    def die_at_the_second(*given: object) -> None:
        published.append(given)
        if len(published) == 2:
            raise KeyboardInterrupt
        real(*given)

    real = folders.publish
    monkeypatch.setattr(folders, "publish", die_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run_locally(tmp_path / "home", tmp_path / "lake", QUERY, "r1", [(arrivals(7), 50)])
    monkeypatch.setattr(folders, "publish", real)
    run_locally(tmp_path / "home", tmp_path / "lake", QUERY, "r1", [(arrivals(7), 50)])
    assert list_datasets(tmp_path / "lake") == ["landed", "means"]
    assert len(StreamRun(tmp_path / "lake", "r1").backward([RESULT])) == 3


def test_only_what_a_stream_made_is_replayed(lake: Path) -> None:
    with pytest.raises(InputError, match="not made by a stream query"):
        make_again(lake, ["lake:means/r2/part#0"])
    with pytest.raises(InputError, match="of one version"):
        make_again(lake, [RESULT, "lake:landed/r1/part-000-000001.jsonl#0"])


@register("test.slow")
def _slow(content: Any) -> Any:
    time.sleep(0.003)
    return content


def test_a_delay_that_differs_is_measured_and_kept_and_ancestors_follow_from_it(tmp_path: Path) -> None:
    query = StreamQuery(
        name="slow",
        sources=(Source(name="x", dataset="landed", topic="readings"),),
        operators=(
            Map(name="late", input="x", function=Function("test.slow"), delay=None),
            Average(name="y", input="late", field="v", window=Window("time", 11), trigger=Trigger("events", 1)),
        ),
        sinks=(Sink(stream="y", dataset="means"),),
    )
    run_locally(tmp_path / "home", tmp_path / "lake", query, "r1", [(arrivals(4), 100)])
    run = StreamRun(tmp_path / "lake", "r1")
    keys = run.inference().keys("late")
    assert (keys.delays >= 3).all()
    assert keys.triggered.tolist() == [0, 10, 20, 30]
    # Each average is of what came out of the map in the eleven milliseconds up to it.
    expected = [
        [int(at) for at in np.flatnonzero((keys.timestamps > now - 11) & (keys.timestamps <= now))]
        for now in keys.timestamps.tolist()
    ]
    found = run.inference().backward("y", np.arange(4))["x"]
    assert found.certain.all()
    assert [found.places[found.rows == row].tolist() for row in range(4)] == expected


def test_ancestors_are_inferred_where_nobody_has_the_functions(lake: Path) -> None:
    description = lake / "_streams/r1/query.json"
    description.write_text(description.read_text().replace('"ceil"', '"of-another-program"'))
    assert len(StreamRun(lake, "r1").backward([RESULT])) == 3
    with pytest.raises(InputError, match="no stream function 'of-another-program'"):
        make_again(lake, [RESULT])
