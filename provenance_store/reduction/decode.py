"""Messages to columns: one row a message, and one row an edge with expanded ids.

A message that cannot be read keeps its row, with the reason, and has no edges. Nothing is judged here: which messages
count is `completeness`'s question, what their edges mean is `contract`'s.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import polars as pl

from provenance_store.errors import MessageError
from provenance_store.model.ids import LAKE_NAMESPACE
from provenance_store.model.message import MANIFEST, PROVENANCE, Headers, Manifest, Message
from provenance_store.reduction.documents import GENERATED, USED, read_documents

MESSAGE_SCHEMA = pl.Schema(
    {
        "message": pl.Int64,  # which one: a number of the caller's choice
        "run": pl.String,  # null where the headers do not tell
        "dic": pl.String,
        "attempt": pl.String,  # null in a message without headers, or with unreadable ones
        "seq": pl.Int64,
        "kind": pl.String,
        "bytes": pl.Int64,
        "crc": pl.Int64,  # tells copies that differ apart, in whatever order they come
        "edges": pl.Int64,
        "lake": pl.Boolean,  # whether any entity in it is a record of the lake
        "reason": pl.String,  # why it cannot be read; null where it can
        "manifest": pl.Binary,
    }
)

_MAX_GENERATION = (1 << 63) - 1
# A manifest that counts more would make the list of what is missing fill the memory; at 256 kB each it is 2.5 TB.
_MAX_MESSAGES = 10_000_000


class Decoded(NamedTuple):
    """A batch as columns, after MESSAGE_SCHEMA and EDGE_SCHEMA."""

    messages: pl.DataFrame
    edges: pl.DataFrame


def decode(messages: Sequence[Message], numbers: Sequence[int] | None = None) -> Decoded:
    """Read a batch; `numbers` name its messages in both tables (0, 1, 2… where not given), no two the same."""
    numbered = list(zip(range(len(messages)) if numbers is None else numbers, messages, strict=True))
    envelopes = [(number, *_read_envelope(message)) for number, message in numbered]
    schema = {name: kind for name, kind in MESSAGE_SCHEMA.items() if name not in {"edges", "lake"}}
    table = pl.DataFrame(envelopes, schema=schema, orient="row")
    unread = set(table.filter(pl.col("reason").is_null() & pl.col("manifest").is_null())["message"])
    edges, reasons = read_documents((number, message.value) for number, message in numbered if number in unread)
    broken = pl.DataFrame(
        {"message": list(reasons), "why": list(reasons.values())}, schema={"message": pl.Int64, "why": pl.String}
    )
    whole = (
        table.join(_summarise(edges), on="message", how="left", maintain_order="left")
        .join(broken, on="message", how="left", maintain_order="left")
        .with_columns(pl.col("edges").fill_null(0), pl.col("lake").fill_null(value=False), pl.coalesce("reason", "why"))
    )
    return Decoded(whole.select(MESSAGE_SCHEMA.names()), edges)


def _summarise(edges: pl.DataFrame) -> pl.DataFrame:
    """How many edges each message has, and whether an entity of the lake stands at an end.

    An activity is no entity, whatever its id.
    """
    relation = pl.col("relation")
    dependent = (relation != USED) & pl.col("dependent").str.starts_with(LAKE_NAMESPACE)
    dependency = (relation != GENERATED) & pl.col("dependency").str.starts_with(LAKE_NAMESPACE)
    return edges.group_by("message").agg(
        pl.len().cast(pl.Int64).alias("edges"), (dependent | dependency).any().alias("lake")
    )


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
