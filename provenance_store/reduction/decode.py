"""Messages to columns: one row a message, and one row an edge.

A message that cannot be read keeps its row, with the reason, and has no edges. Nothing is judged here: which messages
count is `completeness`'s question, what their edges mean is `contract`'s.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from provenance_store.errors import MessageError
from provenance_store.model.message import MANIFEST, PROVENANCE, Headers, Manifest, Message
from provenance_store.reduction.documents import Edges, read_documents, spell, summarise
from provenance_store.reduction.intern import Ids
from provenance_store.reduction.schemas import EDGE_SCHEMA, MESSAGE_SCHEMA

_MAX_GENERATION = (1 << 63) - 1
# A manifest that counts more would make the list of what is missing fill the memory; at 256 kB each it is 2.5 TB.
_MAX_MESSAGES = 10_000_000


class Decoded(NamedTuple):
    """A batch as columns: its messages after MESSAGE_SCHEMA, and edges whose document is a row of that table."""

    messages: pl.DataFrame
    edges: Edges
    ids: Ids

    def spelled(self) -> pl.DataFrame:
        """The edges after EDGE_SCHEMA, with the messages' numbers and the ids' texts."""
        names = spell(self.ids)
        return pl.DataFrame(
            {
                "message": self.messages["message"].gather(self.edges.document),
                "relation": self.edges.relation,
                "dependent": names.gather(self.edges.dependent),
                "dependency": names.gather(self.edges.dependency),
            },
            schema=EDGE_SCHEMA,
        )


def decode(messages: Sequence[Message], numbers: Sequence[int] | None = None) -> Decoded:
    """Read a batch; `numbers` name its messages in the table (0, 1, 2… where not given), no two the same."""
    envelopes = [_read_envelope(message) for message in messages]
    table = pl.DataFrame(envelopes, schema=_ENVELOPE_SCHEMA, orient="row")
    unread = (table["reason"].is_null() & table["manifest"].is_null()).arg_true().to_numpy().astype(np.int32)
    read = read_documents([messages[place].value for place in unread.tolist()])
    counts, shows = summarise(read, len(unread))
    edges, lake = np.zeros(len(messages), np.int64), np.zeros(len(messages), np.bool_)
    edges[unread], lake[unread] = counts, shows
    reasons = table["reason"].to_list()
    for document, reason in read.reasons.items():
        reasons[unread[document]] = reason
    whole = table.with_columns(
        pl.Series("message", range(len(messages)) if numbers is None else numbers, dtype=pl.Int64),
        pl.Series("edges", edges),
        pl.Series("lake", lake),
        pl.Series("reason", reasons, dtype=pl.String),
    )
    # Most batches hold nothing but documents, and then their rows are the documents' numbers.
    rows = read.edges if len(unread) == len(messages) else read.edges._replace(document=unread[read.edges.document])
    return Decoded(whole.select(MESSAGE_SCHEMA.names()), rows, read.ids)


_ENVELOPE_SCHEMA = {name: kind for name, kind in MESSAGE_SCHEMA.items() if name not in {"message", "edges", "lake"}}


def _read_envelope(message: Message) -> tuple[object, ...]:
    """What the headers tell, as run, dic, attempt, seq, kind, bytes, crc, reason and manifest."""
    size, crc = len(message.value), crc32(message.value)
    try:
        headers = Headers.from_strings(message.headers)
    except MessageError as error:
        claimed = message.headers
        kind = claimed.get("kind", PROVENANCE)
        return (claimed.get("run") or None, claimed.get("dic", ""), None, None, kind, size, crc, str(error), None)
    if headers is None:
        return (None, "", None, None, PROVENANCE, size, crc, None, None)
    named = (headers.run, headers.dic, headers.attempt, headers.seq, headers.kind, size, crc)
    if headers.kind != MANIFEST:
        return (*named, None, None)
    try:
        _check_manifest(Manifest.from_bytes(message.value))
    except MessageError as error:
        return (*named, str(error), None)
    return (*named, None, message.value)


def _check_manifest(manifest: Manifest) -> None:
    if sum(manifest.attempts.values()) > _MAX_MESSAGES or manifest.generation > _MAX_GENERATION:
        raise MessageError("not a manifest: it counts more messages or generations than any run has.")
