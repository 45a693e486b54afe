"""What follows from live messages without a database."""

import pytest

from provenance_store.errors import MessageError
from provenance_store.graph.live import Told
from provenance_store.graph.liveness import InRun, Liveness, LiveRun
from provenance_store.streams.event import END
from provenance_store.streams.live import Edge, Expired, SinkVertex, SourceVertex
from tests.live_stream import message

A, B, R = "lake:in/run/p#1", "lake:in/run/p#2", "lake:out/run/p#1"


def test_what_messages_tell_together():
    first = message("run", [SourceVertex(0, A, 7), SourceVertex(0, B, 8), SinkVertex(0, R, 9)])
    second = message("run", [Edge(0, R, A), Edge(0, R, B), Expired(0, R), Expired(5, A), Expired(5, "lake:in/run/p#0")])
    told = Told.of([first, second])
    parameters = told.parameters()
    assert parameters["records"] == [A, B, R]
    assert (parameters["sources"], parameters["times"]) == ([1], [8])  # what is told and expires at once is never live
    assert list(zip(parameters["outputs"], parameters["inputs"], strict=True)) == [(2, 0), (2, 1)]
    assert parameters["expired"] == [R, "lake:in/run/p#0"]
    assert parameters["loose"] == []
    assert told.beyond() == {"sources": [A, B], "inputs": [], "outputs": []}
    assert told.feeds() == {("in", "out"): 2}
    assert told.reads() == ["lake:in/run"]
    later = Told.of([second])
    assert later.beyond() == {"sources": [], "inputs": [A, B], "outputs": [R]}
    assert Told.of([first]).parameters()["loose"] == [A, B, R]


def test_what_contradicts_itself_is_refused():
    with pytest.raises(MessageError, match="after it has expired"):
        Told.of([message("run", [SinkVertex(0, R, 9), Expired(0, A), Edge(0, R, A)])])
    with pytest.raises(MessageError, match="told twice"):
        Told.of([message("run", [SourceVertex(0, A, 7), SourceVertex(0, A, 7)])])


@pytest.mark.parametrize(
    ("reads", "record", "may"),
    [
        ([], A, False),
        (["lake:in/run"], A, True),
        (["lake:in/run"], "lake:in/run.7/p#1", True),
        (["lake:in/run.1"], "lake:in/run/p#1", True),
        (["lake:in/run"], "lake:in/runner/p#1", False),
        (["lake:in/run"], "lake:in/old/p#1", False),
        (["lake:in/old"], "lake:in/new#key", True),
        (["lake:in/run", "lake:in/old"], "lake:in/new/p#1", True),
        (["lake:in/old"], "lake:other/old/p#1", False),
        (["lake:in/old"], "lake:in", False),
    ],
)
def test_what_a_run_may_read(reads, record, may):
    run = LiveRun(run="run", query="q", revision=1, watermark=0, reach=None, reads=reads)
    assert run.may_read(record) is may


def test_the_state_that_says_most_of_the_future_counts():
    def within(state):
        return InRun(run="r", query="q", state=state, time=None, watermark=None, reach=None)

    assert Liveness("a", []).state == "unknown"
    assert Liveness("a", [within("expired"), within("unsure")]).state == "unsure"
    assert Liveness("a", [within("live"), within("expired")]).state == "live"


@pytest.mark.parametrize(("watermark", "ended"), [(None, False), (END - 1, False), (END, True)])
def test_a_run_that_has_told_its_last_has_ended(watermark, ended):
    assert LiveRun(run="r", query="q", revision=1, watermark=watermark, reach=1, reads=[]).has_ended is ended


def test_a_run_that_has_told_no_result_says_itself_what_it_reads() -> None:
    run = LiveRun(run="r", query="q", revision=1, watermark=0, reach=None, reads=["lake:readings", "lake:landed/r"])
    assert run.may_read("lake:readings/v7/part#1")
    assert run.may_read("lake:landed/r.3/part#1")
    assert not run.may_read("lake:landed/other/part#1")
    assert not run.may_read("lake:elsewhere/v/part#1")
