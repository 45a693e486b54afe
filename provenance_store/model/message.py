"""Messages, their headers and the manifest: what travels from a job to the reducer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from provenance_store.errors import MessageError

SCHEMA = "1"
PROVENANCE = "provenance"
MANIFEST = "manifest"
# The mark of a run that was declared, not captured: its edges are between whole versions of datasets.
DECLARED = "declared"
# The mark of a stream query's run: which records its edges stand for is computed from its assertions when asked.
STREAM = "stream"
_MAX_SEQ_DIGITS = 18  # fits a signed 64-bit column


@dataclass(frozen=True, slots=True)
class Headers:
    """Which run, which writer and which of its messages; `seq` counts 0, 1, 2… within the attempt."""

    run: str
    dic: str
    attempt: str
    seq: int
    task: str = ""
    function: str = ""
    node: str = ""
    kind: str = PROVENANCE

    def to_strings(self) -> dict[str, str]:
        """As they stand on the wire and in a recording: strings, all of them."""
        return {
            "run": self.run,
            "dic": self.dic,
            "attempt": self.attempt,
            "seq": str(self.seq),
            "task": self.task,
            "function": self.function,
            "node": self.node,
            "kind": self.kind,
            "schema": SCHEMA,
        }

    @classmethod
    def from_strings(cls, headers: Mapping[str, str]) -> "Headers | None":
        """The headers, or None for a message from someone else's emitter, which has none of ours."""
        if not (OUR_HEADERS & headers.keys()):
            return None
        schema = headers.get("schema", SCHEMA)
        if schema != SCHEMA:
            raise MessageError(f"message schema {schema!r} is not known here; this release reads schema {SCHEMA!r}.")
        kind = headers.get("kind", PROVENANCE)
        if kind not in {PROVENANCE, MANIFEST}:
            raise MessageError(f"message kind {kind!r} is neither {PROVENANCE!r} nor {MANIFEST!r}.")
        required = ("run",) if kind == MANIFEST else ("run", "attempt", "seq")
        missing = [name for name in required if not headers.get(name)]
        if missing:
            raise MessageError(f"header {missing[0]!r} is missing or empty.")
        seq = headers.get("seq", "0")
        if not (seq.isascii() and seq.isdigit() and len(seq) <= _MAX_SEQ_DIGITS):
            raise MessageError(f"header seq {seq[:40]!r} is not a whole number of at most {_MAX_SEQ_DIGITS} digits.")
        return cls(
            run=headers["run"],
            dic=headers.get("dic", ""),
            attempt=headers.get("attempt", ""),
            seq=int(seq),
            task=headers.get("task", ""),
            function=headers.get("function", ""),
            node=headers.get("node", ""),
            kind=kind,
        )


OUR_HEADERS = frozenset(("run", "dic", "attempt", "seq", "kind", "schema"))


@dataclass(frozen=True, slots=True)
class Message:
    """What a transport carries: header strings as they came, and the value's bytes, not yet read."""

    headers: Mapping[str, str]
    value: bytes

    @classmethod
    def of(cls, headers: Headers, value: bytes) -> "Message":
        """A message of ours."""
        return cls(headers.to_strings(), value)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts that the engine committed and how many messages each sent."""

    attempts: dict[str, int]
    generation: int = 0
    # Operations crossed where taking a record away can make new outputs (anti join, limit, top-n).
    marks: list[str] = []

    def to_bytes(self) -> bytes:
        """The value of a manifest message."""
        fields: dict[str, Any] = {"attempts": self.attempts, "generation": self.generation}
        if self.marks:
            fields["marks"] = self.marks
        return msgspec.json.encode(fields)

    @classmethod
    def from_bytes(cls, value: bytes) -> "Manifest":
        """The manifest in a message's value; keys that a later release may add are passed over."""
        try:
            manifest = msgspec.json.decode(value, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MessageError(f"not a manifest: {error}") from None
        if manifest.generation < 0 or any(count < 0 for count in manifest.attempts.values()):
            raise MessageError("not a manifest: a count or the generation is negative.")
        return manifest
