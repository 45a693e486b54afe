"""The whole reduction of a source that ends, in this process: decode, contract locally, judge, contract."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import polars as pl

from provenance_store.model.account import Account
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX
from provenance_store.model.message import Message
from provenance_store.reduction.completeness import Judgement, judge
from provenance_store.reduction.contract import contract, contract_locally
from provenance_store.reduction.decode import MESSAGE_SCHEMA, Decoded, decode
from provenance_store.reduction.documents import EDGE_SCHEMA
from provenance_store.transport.port import Received

# Many messages share the fixed cost of a query; few enough that their text fits in memory beside the columns.
_BATCH_MESSAGES = 2000
_BATCH_BYTES = 64 << 20


class Rejected(NamedTuple):
    """A message that could not be read, and why."""

    message: Message
    reason: str


class Reduced(NamedTuple):
    """A run's reduced graph (columns output and input, compact ids, sorted), its account, and what was rejected."""

    run: str
    graph: pl.DataFrame
    account: Account
    rejected: list[Rejected]


def reduce_messages(received: Iterable[Received]) -> list[Reduced]:
    """Reduce every run in a source, in the order of their ids."""
    started = time.monotonic()
    decoded = [Decoded(pl.DataFrame(schema=MESSAGE_SCHEMA), pl.DataFrame(schema=EDGE_SCHEMA))]
    unread: dict[int, Message] = {}
    first = 0
    for batch in _batches(received):
        numbers = range(first, first + len(batch))
        part = reduce_locally(batch, numbers)
        decoded.append(part)
        unread.update((n, batch[n - first]) for n in part.messages.filter(pl.col("reason").is_not_null())["message"])
        first += len(batch)
    messages = pl.concat([part.messages for part in decoded])
    edges = pl.concat([part.edges for part in decoded])
    return [_finish(judgement, edges, unread, started) for judgement in judge(messages)]


def reduce_locally(messages: Sequence[Message], numbers: Sequence[int]) -> Decoded:
    """A batch decoded, its edges contracted as far as each message alone allows.

    Someone else's emitter, which sends no headers, has not promised whole executions: its edges stay as they are.
    """
    table, edges = decode(messages, numbers)
    foreign = table.filter(pl.col("attempt").is_null(), pl.col("edges") > 0).select("message")
    if foreign.is_empty():
        return Decoded(table, contract_locally(edges))
    whole = edges.join(foreign, on="message", how="anti")
    return Decoded(table, pl.concat([contract_locally(whole), edges.join(foreign, on="message", how="semi").unique()]))


def compact_graph(graph: pl.DataFrame) -> pl.DataFrame:
    """A graph as it is written: compact ids, sorted."""
    compacted = [
        pl.when(pl.col(name).str.starts_with(LAKE_NAMESPACE))
        .then(pl.lit(LAKE_PREFIX) + pl.col(name).str.slice(len(LAKE_NAMESPACE)))
        .otherwise(pl.col(name))
        .alias(name)
        for name in ("output", "input")
    ]
    return graph.select(compacted).sort("output", "input")


def _batches(received: Iterable[Received]) -> Iterator[list[Message]]:
    messages = (one.message for one in received)
    while batch := list(islice(messages, 1)):
        size = len(batch[0].value)
        for message in islice(messages, _BATCH_MESSAGES - 1):
            batch.append(message)
            size += len(message.value)
            if size > _BATCH_BYTES:
                break
        yield batch


def _finish(judgement: Judgement, edges: pl.DataFrame, unread: dict[int, Message], started: float) -> Reduced:
    local = edges.join(judgement.used.select("message"), on="message", how="semi")
    graph = compact_graph(contract(local, names_records=judgement.names_records))
    account = judgement.account(edges_local=local.height, edges_out=graph.height, seconds=time.monotonic() - started)
    rejected = [
        Rejected(unread[number], reason)
        for number, reason in judgement.rejected.select("message", "reason").sort("message").iter_rows()
    ]
    return Reduced(judgement.run, graph, account, rejected)
