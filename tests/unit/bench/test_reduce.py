"""The reduction benchmark on small data, and the stream that it reduces."""

import json

import polars as pl
import pytest
from prov.model import ProvDocument
from typer.testing import CliRunner

from provenance_store.bench import hashtag_stream
from provenance_store.bench import reduce as bench
from provenance_store.bench.hashtag_stream import HashtagStream
from provenance_store.bench.reduce import COLUMNS, Comparison, Row
from provenance_store.bench.reduction_ways import BASELINE, WAYS
from provenance_store.cli import bench as cli
from provenance_store.errors import JobError
from provenance_store.model.document import read_document
from provenance_store.model.ids import RecordId
from provenance_store.model.message import MANIFEST, Manifest, Message

TWEETS = 6000


@pytest.fixture(scope="module")
def stream() -> list[Message]:
    return list(HashtagStream(TWEETS))


def row(way: str, tweets: int, seconds: float, *, exact: bool | None = True) -> Row:
    return Row(
        way=way,
        tweets=tweets,
        messages=3,
        edges=4 * tweets,
        bytes=900 * tweets,
        wall=[seconds, 2 * seconds],
        processor=[seconds, seconds],
        first_call=1.0,
        memory=5 << 20,
        exact=exact,
    )


def test_the_stream_is_the_one_of_the_papers_figures(stream: list[Message]) -> None:
    provenance = stream[:-1]
    edges = sum(len(read_document(message.value)) for message in provenance)
    size = sum(len(message.value) for message in provenance)
    assert 3.8 < edges / TWEETS < 4.6
    assert 200 < size / edges < 235
    assert 1.0 < HashtagStream(TWEETS).dependencies().height / TWEETS < 1.15
    assert max(len(message.value) for message in provenance) < 384 << 10


def test_the_stream_keeps_the_contract(stream: list[Message]) -> None:
    counts: dict[str, int] = {}
    for message in stream[:-1]:
        attempt = message.headers["attempt"]
        assert message.headers["seq"] == str(counts.get(attempt, 0))
        counts[attempt] = counts.get(attempt, 0) + 1
    assert {message.headers["function"] for message in stream[:-1]} == {"map", "combine", "reduce"}
    assert stream[-1].headers["kind"] == MANIFEST
    assert Manifest.from_bytes(stream[-1].value).attempts == counts
    document = ProvDocument.deserialize(content=stream[0].value.decode(), format="json")
    assert len(document.get_records()) == len(read_document(stream[0].value))
    truth = HashtagStream(TWEETS).dependencies()
    assert all(RecordId.parse(name) for name in truth.head(10)["output"].to_list() + truth.head(10)["input"].to_list())


def test_the_same_seed_makes_the_same_stream_and_another_does_not(stream: list[Message]) -> None:
    assert list(HashtagStream(TWEETS)) == stream
    assert next(iter(HashtagStream(TWEETS, seed=2))).value != stream[0].value


@pytest.mark.parametrize("way", [way for name, way in WAYS.items() if name != "local step alone"])
@pytest.mark.parametrize("most_inputs", [1, 2500])
def test_every_way_gives_the_true_dependencies(way: object, most_inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashtag_stream, "_MOST_INPUTS", most_inputs)
    result = way(list(HashtagStream(TWEETS)))  # type: ignore[operator]
    assert HashtagStream(TWEETS).dependencies().equals(pl.DataFrame(result))


def test_ratios_are_to_the_baseline_and_to_the_stream_of_200k() -> None:
    rows = [row("ours", 200_000, 1.0), row("ours", 1_000_000, 6.0), row(BASELINE, 200_000, 4.0)]
    told = Comparison(rows, BASELINE)
    assert told.speedup(rows[0]) == 4.0
    assert told.growth(rows[1]) == pytest.approx(1.2)
    assert told.speedup(rows[1]) is None
    assert all(len(cells) == len(COLUMNS) for cells in told.cells())


def test_the_command_measures_every_way() -> None:
    done = CliRunner().invoke(cli.app, ["bench", "reduce", "--tweets", "1000", "--repeat", "2", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert [one["way"] for one in told] == list(WAYS)
    assert [one["exact"] for one in told] == [True, None, True]
    assert all(len(one["wall"]) == len(one["processor"]) == 2 for one in told)


def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_measure", lambda way, tweets, _: row(way, tweets, 1.0, exact=False))
    done = CliRunner().invoke(cli.app, ["bench", "reduce", "--tweets", "1000"])
    assert isinstance(done.exception, JobError)
    assert "did not give the true dependencies" in str(done.exception)
