"""The whole reduction of a source that ends, in this process: decode, contract locally, judge, contract.

reduce_messages(received)    every run in the source: its graph, its account, and what was rejected
"""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import polars as pl

from provenance_store.model.account import Account
from provenance_store.model.message import Message
from provenance_store.reduction.completeness import Judgement, judge
from provenance_store.reduction.schemas import MESSAGE_SCHEMA
from provenance_store.transport.port import Received

# Many messages share the fixed cost of a batch; few enough that their text fits in memory beside the columns.
_BATCH_MESSAGES = 2000
_BATCH_BYTES = 32 << 20


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
    # The command line imports this module at its start, and native code takes a second to import.
    from provenance_store.reduction.local import reduce_locally  # noqa: PLC0415
    from provenance_store.reduction.whole import Whole  # noqa: PLC0415

    started = time.monotonic()
    whole = Whole()
    tables = [pl.DataFrame(schema=MESSAGE_SCHEMA)]
    unread: dict[int, Message] = {}
    first = 0
    for batch in _batches(received):
        local = reduce_locally(batch, range(first, first + len(batch)))
        whole.add(local)
        tables.append(local.messages)
        unread.update((n, batch[n - first]) for n in local.messages.filter(pl.col("reason").is_not_null())["message"])
        first += len(batch)
    judgements = judge(pl.concat(tables))
    reduced = []
    for judgement, graph in zip(judgements, whole.contract(judgements), strict=True):
        account = judgement.account(
            edges_local=graph.edges_local,
            edges_out=graph.table.height,
            unmade=graph.unmade,
            seconds=time.monotonic() - started,
        )
        reduced.append(Reduced(judgement.run, graph.table, account, list(_rejected(judgement, unread))))
    return reduced


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


def _rejected(judgement: Judgement, unread: dict[int, Message]) -> Iterator[Rejected]:
    for number, reason in judgement.rejected.select("message", "reason").sort("message").iter_rows():
        yield Rejected(unread[number], reason)
