"""The simulator of bad streams, and its command."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import HeadwaterError, InputError, TransportError
from provenance_store.model.message import MANIFEST, Message
from provenance_store.transport.port import Received
from provenance_store.transport.recording import RecordingSink, RecordingSource
from provenance_store.transport.shuffle import Shares, ShuffledSource, displace

MESSAGES = [Message({"run": "r", "attempt": "a", "seq": str(n)}, b'{"used":{}}') for n in range(199)]
MESSAGES.append(Message({"run": "r", "kind": MANIFEST}, b'{"attempts":{"a":199}}'))


def write(path: Path, messages: list[Message]) -> Path:
    with RecordingSink(path) as sink:
        for message in messages:
            sink.send(message)
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", MESSAGES)


def shuffled(recording: Path, *, seed: int = 1, **shares: float) -> list[Message]:
    return [received.message for received in ShuffledSource(recording, Shares(**shares), seed=seed)]


def names(messages: list[Message]) -> Counter[str]:
    return Counter(message.headers.get("seq", "manifest") for message in messages)


@given(st.integers(0, 60), st.floats(0, 100), st.integers(0, 3))
def test_as_many_are_displaced_as_asked_for(count: int, percent: float, seed: int) -> None:
    result = displace(range(count), percent, Random(seed))
    assert sorted(result) == list(range(count))
    moved = sum(place != one for place, one in enumerate(result))
    asked = round(count * percent / 100)
    assert moved == asked or (asked == 1 and moved == 2 * (count > 1))


def test_nothing_asked_for_leaves_the_recording_as_it_is(recording: Path) -> None:
    assert shuffled(recording) == MESSAGES


def test_the_seed_alone_decides(recording: Path) -> None:
    shares = {"displaced": 30, "repeated": 5, "dropped": 5}
    assert shuffled(recording, seed=7, **shares) == shuffled(recording, seed=7, **shares)
    assert shuffled(recording, seed=7, **shares) != shuffled(recording, seed=8, **shares)


def test_everything_out_of_order_takes_the_manifest_along(recording: Path) -> None:
    result = shuffled(recording, displaced=100)
    assert names(result) == names(MESSAGES)
    assert all(before != after for before, after in zip(MESSAGES, result, strict=True))


def test_some_come_twice_and_others_never(recording: Path) -> None:
    counts = names(shuffled(recording, repeated=10, dropped=20))
    assert Counter(counts.values()) == {1: 140, 2: 20}
    assert names(shuffled(recording, dropped=100)) == {}
    assert set(names(shuffled(recording, repeated=100)).values()) == {2}


def test_a_copy_comes_behind_its_message(recording: Path) -> None:
    result = shuffled(recording, repeated=50)
    firsts = list(dict.fromkeys(message.headers.get("seq", "manifest") for message in result))
    assert firsts == [message.headers.get("seq", "manifest") for message in MESSAGES]


def test_shares_that_round_to_more_than_there_is_are_cut(tmp_path: Path) -> None:
    three = write(tmp_path / "three.jsonl", MESSAGES[:3])
    assert Counter(names(shuffled(three, repeated=50, dropped=50)).values()) == {2: 2}


def test_a_folder_is_one_stream_and_odd_lines_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "parts" / "a.jsonl", MESSAGES[:3])
    (tmp_path / "parts" / "b.jsonl").write_bytes(b'\n{"used": {}}\nnot JSON')
    result = shuffled(tmp_path / "parts", displaced=100)
    expected = [received.message for received in RecordingSource(tmp_path / "parts")]
    assert sorted(map(repr, result)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"displaced": 101}, "101 is not a share"),
        ({"repeated": -1}, "-1 is not a share"),
        ({"dropped": float("nan")}, "nan is not a share"),
        ({"repeated": 60, "dropped": 50}, "more than there are"),
    ],
)
def test_shares_that_cannot_be_are_refused(recording: Path, shares: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        shuffled(recording, **shares)


def test_the_command_writes_a_recording_and_says_what_it_did(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    arguments = ["shuffle", str(recording), "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--percent", "10", "--duplicate", "5", "--drop", "5", "--seed", "3"])
    assert done.exit_code == 0
    assert "Read 200; 20 of them out of order, 10 repeated, 10 dropped." in done.stderr
    assert [r.message for r in RecordingSource(out)] == shuffled(recording, seed=3, displaced=10, repeated=5, dropped=5)


@pytest.mark.parametrize(
    ("lines", "sentence"), [(None, "There is no recording"), (b"\n\n", "holds no message"), (b"{}\n", "not a share")]
)
def test_bad_input_gets_a_sentence_and_no_file(tmp_path: Path, lines: bytes | None, sentence: str) -> None:
    if lines is not None:
        (tmp_path / "in.jsonl").write_bytes(lines)
    out = tmp_path / "out.jsonl"
    share = "200" if lines == b"{}\n" else "10"
    done = CliRunner().invoke(app, ["shuffle", str(tmp_path / "in.jsonl"), "--out", str(out), "--percent", share])
    assert isinstance(done.exception, HeadwaterError)
    assert sentence in str(done.exception)
    assert not out.exists()


def test_what_could_not_be_read_to_its_end_does_not_pass_for_a_recording(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(self: ShuffledSource) -> Iterator[Received]:
        yield Received(MESSAGES[0], 0, 0)
        raise TransportError("the disk is gone")

    monkeypatch.setattr(ShuffledSource, "__iter__", break_off)
    out = tmp_path / "cut" / "out.jsonl"
    failed = CliRunner().invoke(app, ["shuffle", str(recording), "--out", str(out)])
    assert isinstance(failed.exception, TransportError)
    assert list(out.parent.iterdir()) == []
