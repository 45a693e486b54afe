"""The writer's end: function executions gathered into messages, numbered and sent, with a receipt at the end.

Many executions share a message, because a broker's cost is per message. What is too large for one message is split
as the contract says: its inputs are gathered in collections, one message each, and the execution uses those.
"""

from collections.abc import Callable, Sequence

from provenance_store.model.ids import LAKE_NAMESPACE, run_namespace
from provenance_store.model.message import Headers, Message
from provenance_store.transport.port import Delivery, Receipt, Receipts, Sink

# A message is sealed at this size: large enough to be cheap per edge, small enough to flow while the task runs.
SEAL_BYTES = 256 << 10
# No message grows beyond this; the broker takes about 1 MB.
MAX_BYTES = 900_000
_OVERHEAD = 300


class Emitter:
    """Writes the messages of one attempt. Ids are compact (`lake:…`, `run:…`) and must not need JSON escapes."""

    def __init__(self, sink: Sink, headers: Headers, *, seal_bytes: int = SEAL_BYTES) -> None:
        self._sink = sink
        self._headers = headers
        self._seal_bytes = seal_bytes
        self._prefix = f'{{"prefix":{{"lake":"{LAKE_NAMESPACE}","run":"{run_namespace(headers.run)}"}}'
        self._used: list[str] = []
        self._generated: list[str] = []
        self._size = 0
        self._seq = 0
        self._number = 0

    @property
    def messages(self) -> int:
        """How many messages were handed over so far."""
        return self._seq

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Add one whole function execution."""
        size = self._estimate(activity, used, "prov:entity") + self._estimate(activity, generated, "prov:entity")
        if size > MAX_BYTES - _OVERHEAD:
            used = self._collect(activity, used)
            size = self._estimate(activity, used, "prov:entity") + self._estimate(activity, generated, "prov:entity")
            if size > MAX_BYTES - _OVERHEAD:
                self._emit_by_derivation(activity, used, generated)
                return
        if self._size + size > MAX_BYTES - _OVERHEAD:
            self.flush()
        number = self._number
        self._used.extend(
            f'"_:{n}":{{"prov:activity":"{activity}","prov:entity":"{entity}"}}'
            for n, entity in enumerate(used, number)
        )
        number += len(used)
        self._generated.extend(
            f'"_:{n}":{{"prov:entity":"{entity}","prov:activity":"{activity}"}}'
            for n, entity in enumerate(generated, number)
        )
        self._number = number + len(generated)
        self._size += size
        if self._size >= self._seal_bytes:
            self.flush()

    def flush(self) -> None:
        """Send what is gathered so far as a message, however small."""
        if not self._used and not self._generated:
            return
        parts = [self._prefix]
        if self._used:
            parts.append(f'"used":{{{",".join(self._used)}}}')
        if self._generated:
            parts.append(f'"wasGeneratedBy":{{{",".join(self._generated)}}}')
        self._send(",".join(parts) + "}")
        self._used, self._generated, self._size, self._number = [], [], 0, 0

    def close(self, close_sink: Callable[[], Delivery], receipts: Receipts, task_attempt: str = "") -> Receipt:
        """Send what is left, wait until all is confirmed, then leave the receipt. Raises if anything was not."""
        self.flush()
        close_sink().check()
        receipt = Receipt(self._headers.run, self._headers.attempt, self._seq, task_attempt)
        receipts.post(receipt)
        return receipt

    def _send(self, document: str) -> None:
        headers = self._headers
        self._sink.send(
            Message(
                {**headers.to_strings(), "seq": str(self._seq)},
                document.encode("ascii"),
            )
        )
        self._seq += 1

    def _collect(self, activity: str, used: Sequence[str]) -> Sequence[str]:
        """Gather inputs in collections of a message each until the execution fits; collections of collections too."""
        level = 0
        while self._estimate(activity, used, "prov:entity") > MAX_BYTES // 4:
            collections: list[str] = []
            members: list[str] = []
            size = 0
            for entity in used:
                name = f"{activity}/inputs-{level}-{len(collections)}"
                members.append(entity)
                size += len(entity) + len(name) + 48
                if size > self._seal_bytes:
                    self._send_collection(name, members)
                    collections.append(name)
                    members, size = [], 0
            if members:
                name = f"{activity}/inputs-{level}-{len(collections)}"
                self._send_collection(name, members)
                collections.append(name)
            used = collections
            level += 1
        return used

    def _send_collection(self, name: str, members: Sequence[str]) -> None:
        rows = ",".join(
            f'"_:{n}":{{"prov:collection":"{name}","prov:entity":"{entity}"}}' for n, entity in enumerate(members)
        )
        self._send(f'{self._prefix},"hadMember":{{{rows}}}}}')

    def _emit_by_derivation(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Too many outputs for a message: a single collection of the inputs, and each output derived from it."""
        inputs = f"{activity}/inputs"
        self._send_collection(inputs, used)
        rows: list[str] = []
        size = 0
        for entity in generated:
            rows.append(f'"_:{len(rows)}":{{"prov:generatedEntity":"{entity}","prov:usedEntity":"{inputs}"}}')
            size += len(rows[-1])
            if size > self._seal_bytes:
                self._send(f'{self._prefix},"wasDerivedFrom":{{{",".join(rows)}}}}}')
                rows, size = [], 0
        if rows:
            self._send(f'{self._prefix},"wasDerivedFrom":{{{",".join(rows)}}}}}')

    @staticmethod
    def _estimate(activity: str, entities: Sequence[str], end: str) -> int:
        # `"_:123":{"prov:activity":"…","prov:entity":"…"},` without its ids.
        return sum(map(len, entities)) + len(entities) * (len(activity) + len(end) + 36)
