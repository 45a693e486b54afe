"""Of the papers' queries: what is planted is found, near misses are not, and results depend on what papers say."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError
from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.event import END
from provenance_store.streams.examples import EXAMPLES, Example, find_example, item_monitor, vehicle_tracking
from provenance_store.streams.examples.common import BEGIN, DAY, mix
from provenance_store.streams.examples.linear_road import PERIOD
from provenance_store.streams.examples.object_annotation import FRAME, SCENE
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import Process
from provenance_store.streams.query import Source, StreamQuery, functions_of
from tests.stream_examples import by_reference

FIRST_TRIPS = BEGIN + 80 * vehicle_tracking.STEP
SEEDS = pytest.mark.parametrize("seed", [1, 7, 2026])


def results(
    name: str, count: int, seed: int, keys: int, stream: str | None = None, until: int = END
) -> list[tuple[Any, list[dict[str, Any]]]]:
    """The results, each with the source events that it depends on."""
    example = EXAMPLES[name]
    events = [event for event in example.generate(count, seed, keys) if event["time"] < until]
    found = by_reference(example, events)[stream or example.query.sinks[0].stream]
    return [(msgspec.json.decode(content), [events[at] for at in sorted(at)]) for content, at in found.elements()]


def test_the_papers_item_overflows_and_is_warned_of() -> None:
    totals = [one for one in results("item-monitor", 200, 1, 20, "visits") if one[0]["item"] == item_monitor.ITEM]
    warnings = [one for one in results("item-monitor", 200, 1, 20, "warnings") if one[0]["item"] == item_monitor.ITEM]
    assert [content for content, _ in totals] == [{"item": 1769192, "visits": -2147483639}]
    assert [content for content, _ in warnings] == [
        {"item": 1769192, "visits": -2147483639, "warning": "ABNORMAL", "most": None}
    ]
    for _, sources in totals + warnings:
        assert {source["line"] for source in sources} == {
            "1769192,5327,1559688951",
            "1769192,321791,1551688946",
            "1769192,2146425285,1561688967",
            "1769192,731254,1573688967",
        }


@SEEDS
def test_peaks_are_warned_of_and_nothing_that_is_just_not_one(seed: int) -> None:
    warned = {content["item"]: content for content, _ in results("item-monitor", 200, seed, 20, "warnings")}
    assert set(warned) == {item_monitor.ITEM, item_monitor.ITEM + 1}
    assert warned[item_monitor.ITEM + 1] == {
        "item": item_monitor.ITEM + 1,
        "visits": 2001,
        "warning": "PEAK",
        "most": 2,
    }
    totals = {content["item"]: content["visits"] for content, _ in results("item-monitor", 200, seed, 20, "visits")}
    assert totals[item_monitor.ITEM + 2] == 2000
    assert totals[item_monitor.ITEM + 3] == 2147483647


@SEEDS
def test_cars_that_break_down_are_found_by_four_reports(seed: int) -> None:
    found = results("linear-road-broken-down", 12 * 10, seed, 12)
    # The first cars do what is planted, in its order; of two that stop for long, both are found.
    first = [content for content, _ in found if content["since"] < BEGIN + 2 * PERIOD]
    assert {content["car"] for content in first} == {0, 4, 5, 6, 8, 9, 10, 11}
    assert {len(sources) for _, sources in found} == {4}


@SEEDS
def test_accidents_are_found_by_eight_reports(seed: int) -> None:
    found = results("linear-road-accident", 12 * 8, seed, 12)
    assert {tuple(content["cars"]) for content, _ in found} == {(4, 5)}
    assert {len(sources) for _, sources in found} == {8}


@SEEDS
def test_a_blackout_is_found_by_192_readings(seed: int) -> None:
    found = results("smart-grid-blackout", 12 * 24 * 5, seed, 12)
    ((blackout, sources),) = found  # near misses are planted on the days behind it
    assert blackout == {"day": BEGIN // DAY + 1, "meters": list(range(8))}
    assert len(sources) == 192


@SEEDS
def test_anomalies_are_found_by_a_day_and_a_midnight(seed: int) -> None:
    found = results("smart-grid-anomaly", 12 * 25, seed, 12)
    ((anomaly, sources),) = found
    assert anomaly["midnight"] == anomaly["consumption"]
    assert len(sources) == 25
    events = EXAMPLES["smart-grid-anomaly"].generate(12 * 25, seed, 12)
    midnights = {event["meter"]: event["consumption"] for event in events if event["time"] >= BEGIN + DAY}
    days: dict[int, int] = {}
    for event in EXAMPLES["smart-grid-anomaly"].generate(12 * 24, seed, 12):
        days[event["meter"]] = days.get(event["meter"], 0) + event["consumption"]
    (half,) = [meter for meter, consumed in days.items() if midnights[meter] == consumed // 2]
    assert half != anomaly["meter"]


@SEEDS
def test_speeding_cars_are_found(seed: int) -> None:
    found = results("vehicle-tracking-speeding", 300, seed, 5, until=FIRST_TRIPS)
    assert {content["car"] for content, _ in found} == {0}
    assert max(len(sources) for _, sources in found) == 30


@SEEDS
def test_visits_of_the_area_are_found(seed: int) -> None:
    found = results("vehicle-tracking-visits", 300, seed, 5, until=FIRST_TRIPS)
    assert {content["car"] for content, _ in found} == {2}
    (south, north), (west, east) = vehicle_tracking.AREA
    for content, sources in found:
        assert content["count"] == len(sources) > 9
        assert all(south <= one["lat"] <= north and west <= one["lon"] <= east for one in sources)


@SEEDS
def test_bicycles_in_front_are_found(seed: int) -> None:
    found = results("object-annotation-bicycles", 4 * SCENE * 2, seed, 2)
    assert {(content["vehicle"], content["object"]) for content, _ in found} == {(0, 0), (1, 0)}
    assert {content["frames"] for content, _ in found} <= set(range(12, 19))


@SEEDS
def test_pedestrians_who_cross_are_found_by_two_frames(seed: int) -> None:
    found = results("object-annotation-pedestrians", 4 * SCENE * 2, seed, 2)
    assert {(content["vehicle"], content["object"]) for content, _ in found} == {(0, 1), (1, 1)}
    assert {len(sources) for _, sources in found} == {2}
    assert {content["right"] - content["left"] for content, _ in found} <= {FRAME * n for n in range(7, 12)}


@SEEDS
def test_movies_above_four_are_found(seed: int) -> None:
    found = results("movie-ratings", 300, seed, 3)
    assert {content["movie"] for content, _ in found} == {0}
    assert all(content["mean"] > 4 for content, _ in found)


@SEEDS
def test_words_of_the_list_are_found_however_written(seed: int) -> None:
    found = results("grep", 500, seed, 5)
    assert {content["word"] for content, _ in found} == {"flood", "outage", "strike"}
    for content, (line,) in found:
        assert content["word"] in line["text"].lower()
    assert any("Outage!" in line["text"] for _, (line,) in found)


def test_words_are_counted() -> None:
    events = [{"time": BEGIN + at, "sender": 0, "text": text} for at, text in enumerate(["Rain, rain", "", "the rain"])]
    (found,) = by_reference(EXAMPLES["word-count"], events).values()
    assert found == {
        ('{"count": 3, "word": "rain"}', frozenset({0, 2})): 1,
        ('{"count": 1, "word": "the"}', frozenset({2})): 1,
    }


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_is_data_and_its_events_follow_from_the_seed(example: Example) -> None:
    assert StreamQuery.from_json(example.query.to_json()) == example.query
    events = list(example.events(200, 3))
    assert len(events) == 200
    assert events == list(example.events(200, 3)) != list(example.events(200, 4))
    assert sorted(events, key=lambda event: event["time"]) != events
    assert all(event.keys() >= {"time", *example.by} for event in events)
    assert len({event["time"] for event in example.events(500, 3, 14)}) < 500  # some share a millisecond
    assert msgspec.json.decode(msgspec.json.encode(events)) == events


def test_events_come_no_later_than_they_may() -> None:
    def every_ten() -> Iterator[dict[str, Any]]:
        return ({"time": 10 * n} for n in range(500))

    times = [event["time"] for event in mix(every_ten(), 95, 1)]
    latest = [max(times[: at + 1]) for at in range(len(times))]
    assert sorted(times) == [event["time"] for event in every_ten()]
    assert 0 < max(late - time for late, time in zip(latest, times, strict=True)) <= 95
    assert list(mix(every_ten(), 0, 1)) == list(every_ten())


def test_functions_of_examples_are_there_in_any_process() -> None:
    """A worker knows a query by its description alone."""
    program = (
        "import sys; from provenance_store.streams.query import StreamQuery, functions_of;"
        "query = StreamQuery.from_json(sys.stdin.buffer.read());"
        "assert 'provenance_store.streams.examples' not in sys.modules;"
        "print(len(functions_of(query)))"
    )
    query = EXAMPLES["linear-road"].query
    told = subprocess.run([sys.executable, "-c", program], input=query.to_json(), capture_output=True, check=True)
    assert int(told.stdout) == len(functions_of(query))


@register("test.running")
def _running(memory: Any, content: Any, most: int) -> tuple[Any, list[Any]]:
    total = (memory or 0) + content["v"]
    return total, [{"g": content["g"], "total": total}] * min(content["v"], most)


def test_a_process_remembers_by_its_fields() -> None:
    function = Function("test.running", {"most": 2})
    query = StreamQuery(
        name="q",
        sources=(Source(name="x", dataset="readings"),),
        operators=(Process(name="y", input="x", function=function, by=("g",)),),
    )
    assert StreamQuery.from_json(query.to_json()) == query
    engine = Engine(query, parents=True)
    values = [("a", 1), ("b", 5), ("a", 0), ("a", 3)]
    engine.add(Arrival("x", at, ("f", at), 0, {"g": group, "v": value}) for at, (group, value) in enumerate(values))
    _, made = engine.advance(END)
    assert [(event.content["g"], event.content["total"]) for event in made["y"]] == [
        ("a", 1), ("b", 5), ("b", 5), ("a", 4), ("a", 4)
    ]  # fmt: skip
    assert [event.parents[0].sequence for event in made["y"]] == [1, 2, 2, 4, 4]


def test_the_command_writes_a_lake_to_run_the_query_on(tmp_path: Path) -> None:
    command = ["streams", "example", "smart-grid", "--out", str(tmp_path), "--count", "50", "--seed", "2"]
    for _ in range(2):  # again changes nothing
        assert CliRunner().invoke(app, command).exit_code == 0
        (file,) = (tmp_path / "smart-grid-readings" / "n50-s2").glob("*.jsonl")
        example = find_example("smart-grid")
        assert StreamQuery.read(tmp_path / "query.json") == example.query
        lines = file.read_bytes().splitlines()
        assert [msgspec.json.decode(line) for line in lines] == list(example.events(50, 2))


def test_the_command_lists_them() -> None:
    told = CliRunner().invoke(app, ["streams", "examples", "--json"])
    assert [one["name"] for one in msgspec.json.decode(told.stdout)] == list(EXAMPLES)


def test_a_mistake_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no example 'nobody'"):
        find_example("nobody")
    (tmp_path / "file").touch()
    command = ["streams", "example", "grep", "--out", str(tmp_path / "file"), "--count", "1", "--seed", "1"]
    told = CliRunner().invoke(app, command)
    assert isinstance(told.exception, InputError)
    assert "grep cannot be written" in str(told.exception)
