"""The state on disk and the runs in it: what counts, what does not, and when a run is complete."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl
import pytest

from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.local import reduce_locally
from provenance_store.reduction.state import MESSAGES, Part, State
from provenance_store.reduction.tracking import RunKey, Tracker

_numbers = itertools.count()


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.open()
    return made


def told(run: str, attempt: str, seq: int) -> Message:
    edges = [("wasDerivedFrom", f"lake:o/v#{attempt}-{seq}", "lake:i/v#1")]
    return Message.of(Headers(run, "dic", attempt, seq), write_document(run, edges))  # type: ignore[arg-type]


def manifest(run: str, generation: int = 0, **attempts: int) -> Message:
    value = Manifest(attempts=attempts, generation=generation).to_bytes()
    return Message.of(Headers(run, "dic", "", 0, kind=MANIFEST), value)


def write(state: State, run: str | None, messages: Sequence[Message], topic: str = "t") -> Part:
    """A part as a worker would write it."""
    number = next(_numbers)
    table = reduce_locally(messages, range(number * 100, number * 100 + len(messages))).messages
    path = state.table(f"part{number}", MESSAGES)
    path.parent.mkdir()
    table.write_parquet(path)
    return Part(
        name=f"part{number}",
        topic=topic,
        run=run,
        partition=0,
        messages=len(messages),
        bytes=1,
        edges_in=int(table["edges"].sum()),
        edges=int(table["edges"].sum()),
        manifests=int(table["manifest"].is_not_null().sum()),
        rejected=0,
        misnamed=False,
        told_at=0,
        read_at=0,
    )


def test_only_recorded_parts_count_and_the_others_are_swept(state: State) -> None:
    kept, lost = write(state, "r", [told("r", "a", 0)]), write(state, "r", [told("r", "a", 1)])
    state.record(0, [kept])
    assert state.open() == {0: [kept]}
    assert state.table(kept.name, MESSAGES).exists()
    assert not state.table(lost.name, MESSAGES).exists()
    state.record(0, [])
    assert state.open() == {0: []}
    assert not state.table(kept.name, MESSAGES).exists()


def test_what_is_forgotten_is_gone_and_the_stream_goes_on_after_it(state: State) -> None:
    first, second, other = (write(state, run, [told(run, "a", 0)]) for run in ("r", "r", "s"))
    for batch, parts in ((5, [first, other]), (6, [second]), (7, [])):
        state.record(batch, parts)
    state.forget([first, second])
    assert state.open() == {5: [other], 7: []}
    assert [state.table(part.name, MESSAGES).exists() for part in (first, second, other)] == [False, False, True]
    assert state.forgotten() == {("t", "r"): 0}
    state.forget([other])
    assert state.open() == {7: []}
    assert state.forgotten() == {("t", "r"): 0, ("t", "s"): 0}


def test_whoever_dies_while_forgetting_has_forgotten(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    part = write(state, "r", [told("r", "a", 0)])
    state.record(0, [part])
    state.record(1, [])
    with monkeypatch.context() as patch:
        patch.setattr(State, "_rewrite", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            state.forget([part])
    late = msgspec.structs.replace(write(state, "r", [told("r", "a", 1)]), read_at=1)
    state.record(2, [late])
    assert state.open() == {2: [late]}
    assert not state.table(part.name, MESSAGES).exists()


def test_a_forgotten_run_that_comes_again_is_known_to_lack_something(state: State) -> None:
    stray = Message({}, write_document("x", [("wasDerivedFrom", "lake:o/v#1", "lake:i/v#1")]))
    tracker, r, s = Tracker(state), RunKey("t", "r"), RunKey("t", "s")
    parts = [write(state, "r", [told("r", "a", 0), manifest("r", a=1)]), write(state, "s", [told("s", "a", 0)])]
    state.record(0, parts)
    tracker.add(parts)
    tracker.forget([r])
    for seen in (tracker, Tracker(state)):
        assert (seen.is_forgotten(r), seen.is_forgotten(s)) == (True, False)
    assert tracker.runs() == [s]
    late = [write(state, "r", [told("r", "a", 0)]), write(state, None, [stray])]
    tracker.add(late)
    # A message without a run is nobody's, as there were two runs.
    assert tracker.runs() == [r, s, RunKey("t", "unknown")]
    assert tracker.parts(r) == [late[0]]
    assert not tracker.is_complete(r)


def test_a_run_is_complete_when_all_its_manifest_counts_is_there(state: State) -> None:
    tracker, key = Tracker(state), RunKey("t", "r")
    tracker.add([write(state, "r", [told("r", "a", 0), manifest("r", a=2)])])
    assert tracker.runs() == [key]
    assert tracker.progress(key).expected == 2
    assert not tracker.is_complete(key)
    tracker.add([write(state, "r", [told("r", "a", 0)])])  # as many as expected, but one of them twice
    assert not tracker.is_complete(key)
    assert tracker.judge(key).missing == {"a": [1]}
    tracker.add([write(state, "r", [told("r", "a", 1)])])
    assert tracker.is_complete(key)
    assert tracker.judge(key).duplicates == 1


def test_a_later_generation_asks_for_more(state: State) -> None:
    tracker, key = Tracker(state), RunKey("t", "r")
    tracker.add([write(state, "r", [told("r", "a", 0), manifest("r", a=1)])])
    assert tracker.is_complete(key)
    tracker.add([write(state, "r", [manifest("r", generation=1, b=1)])])
    assert not tracker.is_complete(key)
    tracker.add([write(state, "r", [told("r", "b", 0)])])
    assert tracker.is_complete(key)
    assert tracker.judge(key).used["attempt"].to_list() == ["b"]


def test_messages_without_a_run_are_of_the_only_one_or_by_themselves(state: State) -> None:
    tracker = Tracker(state)
    stray = Message({}, write_document("x", [("wasDerivedFrom", "lake:o/v#1", "lake:i/v#1")]))
    tracker.add([write(state, None, [stray]), write(state, None, [stray], topic="u")])
    assert tracker.runs() == [RunKey("t", "unknown"), RunKey("u", "unknown")]
    tracker.add([write(state, "r", [told("r", "a", 0)])])
    assert tracker.runs() == [RunKey("t", "r"), RunKey("u", "unknown")]
    assert tracker.judge(RunKey("t", "r")).used.height == 2
    tracker.add([write(state, "s", [told("s", "a", 0)])])
    assert tracker.runs() == [RunKey("t", "r"), RunKey("t", "s"), RunKey("t", "unknown"), RunKey("u", "unknown")]
    assert tracker.judge(RunKey("t", "r")).used.height == 1
    assert tracker.judge(RunKey("t", "unknown")).verdict == "unknown"


def test_how_long_a_run_has_been_quiet(state: State) -> None:
    now = 10.0
    tracker = Tracker(state, clock=lambda: now)
    tracker.add([write(state, "r", [told("r", "a", 0)])])
    now = 25.0
    assert tracker.quiet_for(RunKey("t", "r")) == pytest.approx(15.0)
    assert isinstance(tracker.judge(RunKey("t", "r")).used, pl.DataFrame)
