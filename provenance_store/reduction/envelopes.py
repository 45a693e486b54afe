"""What the headers of messages tell, and the message table.

A message that cannot be read keeps its row, with the reason, and has no edges. Nothing is judged here: which messages
count is `completeness`'s question.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from crc32c import crc32c

from provenance_store.errors import MessageError
from provenance_store.model.message import MANIFEST, PROVENANCE, Headers, Manifest, Message
from provenance_store.reduction.native import Flags, Numbers
from provenance_store.reduction.schemas import MESSAGE_SCHEMA

_MAX_GENERATION = (1 << 63) - 1
# A manifest that counts more would make the list of what is missing fill the memory; at 256 kB each it is 2.5 TB.
_MAX_MESSAGES = 10_000_000
_OF_DOCUMENTS = {"message", "edges", "lake"}


class _Envelope(NamedTuple):
    """A row of the message table, without what only the document tells."""

    run: str | None
    dic: str
    attempt: str | None
    seq: int | None
    kind: str
    size: int
    crc: int
    reason: str | None
    manifest: bytes | None


class Envelopes(NamedTuple):
    """Messages by what stands outside their documents, and which of them hold one that is to be read."""

    envelopes: list[_Envelope]
    documents: Numbers

    def promise_whole_executions(self) -> Flags:
        """Of each document. Someone else's emitter, which sends no headers, does not."""
        return np.array([self.envelopes[place].attempt is not None for place in self.documents.tolist()], np.bool_)

    def tabulate(
        self, numbers: Sequence[int], *, edges: Numbers, lake: Flags, reasons: Mapping[int, str]
    ) -> pl.DataFrame:
        """The table after MESSAGE_SCHEMA, once the documents are read; the reasons are by document."""
        schema = {name: kind for name, kind in MESSAGE_SCHEMA.items() if name not in _OF_DOCUMENTS}
        rows = list(self.envelopes)
        for document, reason in reasons.items():
            place = int(self.documents[document])
            rows[place] = rows[place]._replace(reason=reason)
        counts, shows = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        counts[self.documents], shows[self.documents] = edges, lake
        columns = [
            pl.Series("message", numbers, dtype=pl.Int64),
            *pl.DataFrame(rows, schema=schema, orient="row").get_columns(),
            pl.Series("edges", counts),
            pl.Series("lake", shows),
        ]
        return pl.DataFrame(columns).select(MESSAGE_SCHEMA.names())


def read_envelopes(messages: Sequence[Message]) -> Envelopes:
    """Read the headers of a batch, and the manifests in it."""
    envelopes = [_read_envelope(message) for message in messages]
    unread = [place for place, one in enumerate(envelopes) if one.reason is None and one.manifest is None]
    return Envelopes(envelopes, np.array(unread, np.int64))


def _read_envelope(message: Message) -> _Envelope:
    size, crc = len(message.value), crc32c(message.value)
    try:
        headers = Headers.from_strings(message.headers)
    except MessageError as error:
        claimed = message.headers
        kind = claimed.get("kind", PROVENANCE)
        run = claimed.get("run") or None
        return _Envelope(run, claimed.get("dic", ""), None, None, kind, size, crc, str(error), None)
    if headers is None:
        return _Envelope(None, "", None, None, PROVENANCE, size, crc, None, None)
    reason = manifest = None
    if headers.kind == MANIFEST:
        try:
            _check_manifest(Manifest.from_bytes(message.value))
            manifest = message.value
        except MessageError as error:
            reason = str(error)
    return _Envelope(headers.run, headers.dic, headers.attempt, headers.seq, headers.kind, size, crc, reason, manifest)


def _check_manifest(manifest: Manifest) -> None:
    if sum(manifest.attempts.values()) > _MAX_MESSAGES or manifest.generation > _MAX_GENERATION:
        raise MessageError("not a manifest: it counts more messages or generations than any run has.")
