"""Writes the PROV-JSON of one operation in one Python task: edges into messages, a receipt at the end.

A task that ends well adds its receipt to an accumulator, which Spark adds up over successful tasks alone. A task that
raises, or whose output nobody reads to its end, leaves none, and what it sent is discarded.
"""

import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from pyspark import Accumulator, AccumulatorParam, TaskContext

from provenance_store.errors import JobError, TransportError
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX, run_namespace
from provenance_store.model.message import Headers, Message
from provenance_store.transport.port import Sink
from spark_apps.capture.rdd_sinks import SinkAddress
from spark_apps.settling import settle

# What a record depends on: one id as it is written, several, or none.
Token: TypeAlias = str | tuple[str, ...]

# An operation hands over this many records at a time: enough that members of a group meet.
BATCH = 1 << 15
_SEAL_BYTES = 384 << 10
# Members told in one relation, so that no relation comes near the size of a message.
_MEMBERS = 1000
# With more files than this in a batch, ids are written whole: readers expand by trying each prefix in turn.
_MAX_PREFIXES = 32
_HOST = socket.gethostname()


class ReceiptsParam(AccumulatorParam[dict[str, int]]):
    """Adds up receipts: which attempt sent how many messages."""

    def zero(self, value: dict[str, int]) -> dict[str, int]:
        """No receipt."""
        return {}

    def addInPlace(self, value1: dict[str, int], value2: dict[str, int]) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Both."""
        value1.update(value2)
        return value1


@dataclass(frozen=True, eq=False)
class TaskInfo:
    """What every task of a run needs to know; travels with the tasks."""

    run: str
    dic: str
    address: SinkAddress
    nonce: str
    secret: bytes
    receipts: Accumulator[dict[str, int]]
    # Short names of input files, which tokens begin with, and the namespaces of their records.
    files: dict[str, str]


class TaskWriter:
    """Sends the edges of one execution of one operation, and leaves the receipt."""

    def __init__(self, info: TaskInfo, operation: str, split: int) -> None:
        context = TaskContext.get()
        if context is None:
            raise JobError(f"{operation} was executed outside a task, so what it told could not be accounted for.")
        self._info = info
        stage, partition = context.stageId(), context.partitionId()
        # A task may compute a partition twice, as where an RDD is united with itself: hence the last part.
        attempt = (
            f"{info.nonce}-s{stage}-p{partition}.{context.attemptNumber()}-a{context.taskAttemptId()}"
            f"-{operation}.{split}-{os.urandom(4).hex()}"
        )
        self.attempt = attempt
        self._headers = Headers(
            info.run, info.dic, attempt, 0, task=f"s{stage}-p{partition}", function=operation, node=_HOST
        ).to_strings()
        self._seq = 0
        self._sink: Sink | None = None
        self._lost = False

    def members(self, groups: Iterable[tuple[str, Sequence[Token]]]) -> None:
        """Tell the members of groups, each given as its name and its members' tokens."""
        table = [(name, list(dict.fromkeys(_flat(tokens)))) for name, tokens in groups]
        prefixes = self._prefixes(token for _, tokens in table for token in tokens)
        rows: list[str] = []
        size = 0
        for name, tokens in table:
            told = tokens if prefixes is not None else list(map(self._whole, tokens))
            for at in range(0, len(told), _MEMBERS):
                # A relation has one id at each end: a list of members would be shorter, and is not in the contract.
                some = [
                    f'"_:{number}":{{"prov:collection":"{name}","prov:entity":"{token}"}}'
                    for number, token in enumerate(told[at : at + _MEMBERS], len(rows))
                ]
                rows += some
                size += sum(map(len, some))
                if size > _SEAL_BYTES:
                    self._seal("hadMember", rows, prefixes)
                    rows, size = [], 0
        self._seal("hadMember", rows, prefixes)

    def derived(self, namespace: str, positions: Sequence[int], tokens: Sequence[Token]) -> None:
        """Tell what the records at these positions of an output file were made from."""
        if not all(type(token) is str for token in tokens):
            pairs = [
                (at, one) for at, token in zip(positions, tokens, strict=True) for one in dict.fromkeys(_flat([token]))
            ]
            positions, tokens = [at for at, _ in pairs], [one for _, one in pairs]
        ids: Sequence[str] = tokens  # type: ignore[assignment]  # they are all texts now
        prefixes = self._prefixes(ids)
        if prefixes is None:
            ids = list(map(self._whole, ids))
        # An edge is as long as its ids and some eighty bytes, so this many make a message of about the right size.
        step = max(1, _SEAL_BYTES // (max(map(len, ids), default=0) + 80))
        for at in range(0, len(ids), step):
            rows = [
                f'"_:{number}":{{"prov:generatedEntity":"o:{position}","prov:usedEntity":"{token}"}}'
                for number, position, token in zip(
                    count(), positions[at : at + step], ids[at : at + step], strict=False
                )
            ]
            self._seal("wasDerivedFrom", rows, {**(prefixes or {}), "o": namespace})

    def close(self) -> None:
        """Wait until all is confirmed, then leave the receipt."""
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                sink.close().check()
            except TransportError as error:
                self._fail(error)
        if self._seq:
            self._info.receipts.add({self.attempt: self._seq})
        settle()

    def _prefixes(self, tokens: Iterable[str]) -> Mapping[str, str] | None:
        """The prefixes of files that the tokens need; None where they are too many."""
        files = self._info.files
        if len(files) <= 2:  # noqa: PLR2004 - looking costs more than binding one too many
            return files
        used = {token[: token.index(":")] for token in tokens}
        used.discard("run")
        return {name: files[name] for name in sorted(used)} if len(used) <= _MAX_PREFIXES else None

    def _whole(self, token: str) -> str:
        name, _, position = token.partition(":")
        if name == "run":
            return token
        return LAKE_PREFIX + self._info.files[name][len(LAKE_NAMESPACE) :] + position

    def _seal(self, relation: str, rows: list[str], prefixes: Mapping[str, str] | None) -> None:
        if not rows:
            return
        bound = {"lake": LAKE_NAMESPACE, "run": run_namespace(self._info.run), **(prefixes or {})}
        # Ids and namespaces are percent-encoded, so nothing in them needs an escape.
        head = ",".join(f'"{name}":"{namespace}"' for name, namespace in bound.items())
        value = f'{{"prefix":{{{head}}},"{relation}":{{{",".join(rows)}}}}}'.encode("ascii")
        self._send(Message({**self._headers, "seq": str(self._seq)}, value))
        self._seq += 1

    def _send(self, message: Message) -> None:
        if self._lost:
            return
        try:
            if self._sink is None:
                self._sink = self._info.address.open()
            self._sink.send(message)
        except TransportError as error:
            self._fail(error)

    def _fail(self, error: TransportError) -> None:
        """Under `fail` the task fails. Under `degrade` the receipt counts what should have been sent."""
        if self._info.address.policy == "fail":
            raise error
        self._lost = True
        self._sink = None
        sys.stderr.write(f"headwater: provenance will be partial: {error}\n")


def _flat(tokens: Sequence[Token]) -> Iterable[str]:
    if all(type(token) is str for token in tokens):
        return tokens  # type: ignore[return-value]  # they are all texts
    return [one for token in tokens for one in ((token,) if type(token) is str else token)]


def merge(left: Token, right: Token) -> Token:
    """What a record depends on that two records made."""
    first: tuple[Any, ...] = (left,) if type(left) is str else left  # type: ignore[assignment]  # it is the tuple
    return first + ((right,) if type(right) is str else right)  # type: ignore[operator]  # it is the tuple
