from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.message import Message
from provenance_store.transport.recording import RecordingSink, RecordingSource, decode_line, encode_line

headers = st.dictionaries(
    st.text(max_size=8), st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4
)


@given(headers, st.binary(max_size=40) | st.just(b'{"used": {}}'))
def test_a_line_gives_its_message_back(names: dict[str, str], value: bytes) -> None:
    line = encode_line(Message(names, value))
    assert line.count(b"\n") == 1
    assert decode_line(line) == Message(names, value)


def test_a_bare_document_is_a_message_without_headers() -> None:
    assert decode_line(b'{"used": {}}\n') == Message({}, b'{"used": {}}')


@pytest.mark.parametrize(
    "line", [b"not json", b'{"headers": {"seq": 1}, "value": {}}', b"[]", b'{"value_base64": "%"}']
)
def test_a_line_out_of_contract_is_handed_on_whole_to_be_rejected(line: bytes) -> None:
    assert decode_line(line + b"\n") == Message({}, line)


def test_an_unfinished_recording_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    sink = RecordingSink(path)
    sink.send(Message({}, b"{}"))
    assert not path.exists()
    sink.close()
    assert [received.message for received in RecordingSource(path)] == [Message({}, b"{}")]


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no recording .*missing\.jsonl"):
        RecordingSource(tmp_path / "missing.jsonl")
