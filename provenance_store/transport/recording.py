"""Recordings: a stream as a file, one message a line, `{"headers": {…}, "value": {…}}`.

A line that is a bare PROV-JSON document is a message without headers. A value that is not a JSON object cannot stand
in a line as itself; it is kept byte for byte in `value_base64`. A line that is not even JSON becomes a message whose
value is the line, so that whoever reads values can reject it with a reason: nothing is dropped here.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.errors import InputError, TransportError
from provenance_store.model.files import write_whole
from provenance_store.model.message import Message
from provenance_store.transport.port import Closing, Delivery, Receipt, Received

SUFFIX = ".jsonl"


class _Line(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw()
    value_base64: bytes | None = None
    headers: dict[str, str] = {}


_line_decoder = msgspec.json.Decoder(_Line)


def encode_line(message: Message) -> bytes:
    """A message as its line of a recording, newline included."""
    headers = msgspec.json.encode(dict(message.headers))
    if _is_json_object(message.value):
        # In JSON a raw line break is only ever white space between tokens.
        value = b'"value":' + message.value.replace(b"\r", b" ").replace(b"\n", b" ")
    else:
        value = b'"value_base64":"' + base64.b64encode(message.value) + b'"'
    return b'{"headers":' + headers + b"," + value + b"}\n"


def decode_line(line: bytes) -> Message:
    """The message in a line; whatever is no message line is a message without headers whose value is the line."""
    line = line.rstrip(b"\r\n")
    try:
        decoded = _line_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Message({}, line)
    if decoded.value_base64 is not None:
        return Message(decoded.headers, decoded.value_base64)
    raw = bytes(decoded.value)
    return Message(decoded.headers, raw) if raw else Message({}, line)


class RecordingSink(Closing):
    """Writes a recording. The file appears under its name only when it is whole and on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        self._sent = 0
        self._delivery: Delivery | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._unfinished.open("wb", buffering=1 << 20)
        except OSError as error:
            raise TransportError(f"The recording {path} cannot be written: {error.strerror}.") from error

    def send(self, message: Message) -> None:
        """Append one message."""
        if self._delivery is not None:
            raise TransportError(f"The recording {self._path} is closed.")
        self._sent += 1
        try:
            self._file.write(encode_line(message))
        except OSError as error:
            raise TransportError(f"The recording {self._path} cannot be written: {error.strerror}.") from error

    def abandon(self) -> None:
        """Give up: what was written is not the whole, so it never gets its name."""
        if self._delivery is None:
            self._delivery = Delivery(0, self._sent, f"{self._path} was given up")
            self._file.close()
            self._unfinished.unlink(missing_ok=True)

    def close(self, timeout: float | None = None) -> Delivery:
        """Bring all to disk, then give the file its name."""
        if self._delivery is None:
            try:
                with self._file as file:
                    file.flush()
                    os.fsync(file.fileno())
                self._unfinished.replace(self._path)
                self._delivery = Delivery(self._sent, 0)
            except OSError as error:
                self._delivery = Delivery(0, self._sent, f"{self._path}: {error.strerror}")
        return self._delivery


class RecordingSource(Closing):
    """Reads a recording: a file, or a folder of them (one partition each, in the order of their names)."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError(f"There is no recording {path}.")
        self._files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]

    def __iter__(self) -> Iterator[Received]:
        for partition, path in enumerate(self._files):
            try:
                with path.open("rb") as file:
                    for offset, line in enumerate(file):
                        if line.strip():
                            yield Received(decode_line(line), partition, offset)
            except OSError as error:
                raise InputError(f"The recording {path} cannot be read: {error.strerror}.") from error

    def close(self) -> None:
        """Nothing is held between iterations."""


class RecordingReceipts:
    """Receipts as small files beside the recordings, named after the writer, so posting twice leaves one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def post(self, receipt: Receipt) -> None:
        """Write the receipt under the writer's name."""
        path = self._folder / _file_name(receipt.run) / f"{_file_name(receipt.attempt)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(receipt))

    def gather(self, run: str) -> list[Receipt]:
        """Every receipt of the run."""
        files = sorted((self._folder / _file_name(run)).glob("*.json"))
        return [msgspec.json.decode(file.read_bytes(), type=Receipt) for file in files]


class RecordingTransport:
    """A folder that stands in for a broker: a folder a topic, a file a writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sink(self, topic: str) -> RecordingSink:
        """A file of its own in the topic's folder, for this writer alone."""
        return RecordingSink(self._folder / topic / f"{os.getpid()}-{os.urandom(6).hex()}{SUFFIX}")

    def source(self, topic: str) -> RecordingSource:
        """All that was recorded of the topic."""
        return RecordingSource(self._folder / topic)

    def close(self) -> None:
        """Nothing is shared, so nothing is left open."""

    def receipts(self) -> RecordingReceipts:
        """The receipts of every run recorded here."""
        return RecordingReceipts(self._folder / "receipts")


def _file_name(text: str) -> str:
    # Attempts are named by engines; a hash of ours would hide them from a person looking into the folder.
    return msgspec.json.encode(text)[1:-1].decode().replace("%", "%25").replace("/", "%2F")


def _is_json_object(value: bytes) -> bool:
    try:
        decoded: Any = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(decoded, dict)
