"""The writer's end: function executions gathered into messages, numbered and sent, with a receipt at the end.

Many executions share a message, because a broker's cost is per message. What is too large for one message is split as
the contract says: its inputs are gathered in collections of a message each, and the execution uses those.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from provenance_store.model.ids import LAKE_NAMESPACE, run_namespace
from provenance_store.model.message import Headers, Message
from provenance_store.transport.port import Delivery, Receipt, Receipts, Sink

# A message is sealed at this size: large enough to be cheap per edge, small enough to flow while the task runs.
SEAL_BYTES = 256 << 10
# No message grows beyond this; the broker takes about 1 MB.
MAX_BYTES = 900_000
_OVERHEAD = 300
# A part of one would gather nothing.
_FEWEST = 2
# `"_:123":{"prov:generatedEntity":"…","prov:usedEntity":"…"},` without its ids.
_ROW = 64
# Numbers as texts: the same few thousand name the rows of every message.
_numbers: list[str] = []


class Emitter:
    """Writes the messages of one attempt. Ids are compact (`lake:…`, `run:…`) and must not need JSON escapes.

    `prefixes` binds more prefixes to namespaces, such as one to an input file's, so that ids are short.
    """

    def __init__(
        self, sink: Sink, headers: Headers, *, seal_bytes: int = SEAL_BYTES, prefixes: Mapping[str, str] | None = None
    ) -> None:
        self._sink = sink
        self._headers = headers
        self._seal_bytes = seal_bytes
        bound = {"lake": LAKE_NAMESPACE, "run": run_namespace(headers.run), **(prefixes or {})}
        self._prefix = '{"prefix":{' + ",".join(f'"{name}":"{space}"' for name, space in bound.items()) + "}"
        self._used: list[str] = []
        self._generated: list[str] = []
        self._derived: list[str] = []
        self._members: list[str] = []
        self._size = 0
        self._seq = 0
        self._number = 0

    @property
    def messages(self) -> int:
        """How many messages were handed over so far."""
        return self._seq

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Add one whole function execution."""
        size = self._estimate(activity, used) + self._estimate(activity, generated)
        if size > self._most:
            used = self._gather(activity, used)
            size = self._estimate(activity, used) + self._estimate(activity, generated)
        if size > self._most:
            self._emit_by_derivation(activity, used, generated)
            return
        self._make_room(size)
        about = f'":{{"prov:activity":"{activity}","prov:entity":"'
        if used:
            self._used.append(self._rows(about, used))
        if generated:
            self._generated.append(self._rows(about, generated))
        self._seal_if_full()

    def emit_each(self, names: Sequence[str], *, activity: str, used: str, generated: str) -> None:
        """Add a whole function execution for every name: `<activity><name>`, its input and its output likewise.

        For functions that see one record at a time, of which there are millions.
        """
        size = 2 * (len(activity) + _ROW) + len(used) + len(generated) + 4 * max(map(len, names), default=0)
        most = max(1, self._seal_bytes // size)
        about = f'":{{"prov:activity":"{activity}'
        for at in range(0, len(names), most):
            part = names[at : at + most]
            self._make_room(len(part) * size)
            self._used.append(self._rows_of(part, about, f'","prov:entity":"{used}'))
            self._generated.append(self._rows_of(part, about, f'","prov:entity":"{generated}'))
            self._seal_if_full()

    def derive(self, generated: Sequence[str], used: str) -> None:
        """Add what an execution with one input made: that each was derived from it says the same in less."""
        number = self._number
        for entity in generated:
            self._derived.append(f'"_:{number}":{{"prov:generatedEntity":"{entity}","prov:usedEntity":"{used}"}}')
            number += 1
            self._size += len(entity) + len(used) + _ROW
            if self._size >= self._seal_bytes:
                self.flush()
                number = 0
        self._number = number

    def collect(self, name: str, members: Sequence[str]) -> None:
        """Add members of a collection: no more than fit in a message.

        A relation has one id at each end; a list of members would be shorter, and is not in the contract.
        """
        if not members:
            return
        self._make_room(self._estimate(name, members))
        self._members.append(self._rows(f'":{{"prov:collection":"{name}","prov:entity":"', members))
        self._seal_if_full()

    def flush(self) -> None:
        """Send what is gathered so far as a message, however small."""
        relations = {
            "used": self._used,
            "wasGeneratedBy": self._generated,
            "wasDerivedFrom": self._derived,
            "hadMember": self._members,
        }
        parts = [f'"{relation}":{{{",".join(rows)}}}' for relation, rows in relations.items() if rows]
        if not parts:
            return
        self._send(",".join([self._prefix, *parts]) + "}")
        self._used, self._generated, self._derived, self._members = [], [], [], []
        self._size, self._number = 0, 0

    def close(self, close_sink: Callable[[], Delivery], receipts: Receipts, task_attempt: str = "") -> Receipt:
        """Send what is left, wait until all is confirmed, then leave the receipt. Raises if anything was not."""
        self.flush()
        close_sink().check()
        receipt = Receipt(self._headers.run, self._headers.attempt, self._seq, task_attempt)
        receipts.post(receipt)
        return receipt

    # Rows are put together in one go, column by column: most of a stream is the same texts again and again.

    def _rows(self, about: str, entities: Sequence[str]) -> str:
        """Rows that differ in the entity alone."""
        parts = ['"},"_:', "", about, ""] * len(entities)
        parts[0] = '"_:'
        parts[1::4] = self._take_numbers(len(entities))
        parts[3::4] = entities
        return "".join(parts) + '"}'

    def _rows_of(self, names: Sequence[str], first: str, second: str) -> str:
        """A row for every name, which stands after each of the two texts."""
        parts = ['"},"_:', "", first, "", second, ""] * len(names)
        parts[0] = '"_:'
        parts[1::6] = self._take_numbers(len(names))
        parts[3::6] = parts[5::6] = names
        return "".join(parts) + '"}'

    def _take_numbers(self, count: int) -> list[str]:
        start, self._number = self._number, self._number + count
        if len(_numbers) < self._number:
            _numbers.extend(map(str, range(len(_numbers), 2 * self._number)))
        return _numbers[start : self._number]

    @property
    def _most(self) -> int:
        """How much of a message its rows may fill."""
        return MAX_BYTES - _OVERHEAD - len(self._prefix)

    def _make_room(self, size: int) -> None:
        if self._size + size > self._most:
            self.flush()
        self._size += size

    def _seal_if_full(self) -> None:
        if self._size >= self._seal_bytes:
            self.flush()

    def _send(self, document: str) -> None:
        self._sink.send(
            Message({**self._headers.to_strings(), "seq": str(self._seq)}, document.encode("ascii")),
        )
        self._seq += 1

    def _gather(self, activity: str, used: Sequence[str]) -> Sequence[str]:
        """Gather inputs in collections until what uses them fits; collections of collections too."""
        level = 0
        while len(used) > 1 and self._estimate(activity, used) > self._most // 4:
            names: list[str] = []
            for part in self._parts(used, f"{activity}/inputs-{level}-"):
                names.append(f"{activity}/inputs-{level}-{len(names)}")
                self.collect(names[-1], part)
            used = names
            level += 1
        return used

    def _parts(self, ids: Sequence[str], name: str) -> Iterable[Sequence[str]]:
        """The ids in order, in parts that fill a good half of a message; of two at least, so that they become fewer."""
        most = min(self._seal_bytes, self._most // 2)
        row = len(name) + _ROW + 8
        start = size = 0
        for place, one in enumerate(ids):
            size += len(one) + row
            if size > most and place - start >= _FEWEST:
                yield ids[start:place]
                start, size = place, len(one) + row
        yield ids[start:]

    def _emit_by_derivation(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Too many outputs for a message: a single collection of the inputs, and each output derived from it."""
        inputs = f"{activity}/inputs"
        if used:
            self.collect(inputs, used)
        self.derive(generated, inputs)

    @staticmethod
    def _estimate(activity: str, entities: Sequence[str]) -> int:
        return sum(map(len, entities)) + len(entities) * (len(activity) + _ROW)
