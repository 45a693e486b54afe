"""One writer of a task: its emitter, its sink and its receipt, and what happens when the sink fails.

Policy `fail`: the writer raises, the task fails, the engine tries it again. Policy `degrade`: the job goes on, and the
writer leaves a receipt over what it should have sent, so that the manifest names what is missing and the account says
partial. A writer that cannot even leave that receipt tells `close`'s caller how much is lost.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from provenance_store.errors import TransportError
from provenance_store.model.message import Headers, Message
from provenance_store.transport.emitter import Emitter
from provenance_store.transport.port import Delivery, Receipts, Sink, Transport

Policy: TypeAlias = Literal["fail", "degrade"]


class Writer:
    """Sends the executions of one attempt's one process."""

    def __init__(
        self,
        transport: Transport,
        topic: str,
        headers: Headers,
        *,
        task_attempt: str,
        policy: Policy = "fail",
        prefixes: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._task_attempt = task_attempt
        self._policy: Policy = policy
        opening: Callable[[], Sink] = lambda: transport.sink(topic)  # noqa: E731 - opened by whichever sink it is
        self._sink = opening() if policy == "fail" else _LossySink(opening)
        self._emitter = Emitter(self._sink, headers, prefixes=prefixes)

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Send one whole function execution."""
        self._emitter.emit(activity, used, generated)

    def emit_each(self, names: Sequence[str], *, activity: str, used: str, generated: str) -> None:
        """Send a whole function execution for every name, whose ids are the name after these beginnings."""
        self._emitter.emit_each(names, activity=activity, used=used, generated=generated)

    def close(self) -> int:
        """Wait until all is confirmed and leave the receipt; how many messages are lost that no receipt tells of."""
        receipts: Receipts = self._transport.receipts()
        try:
            self._emitter.close(self._sink.close, receipts, self._task_attempt)
        except (TransportError, OSError) as error:
            if self._policy == "fail":
                raise
            sys.stderr.write(f"headwater: no receipt could be left, provenance will be partial: {error}\n")
            return max(self._emitter.messages, 1)
        return 0


class _LossySink:
    """Hands messages on until one fails; from then on they are lost, and the receipt's count shows it."""

    def __init__(self, opening: Callable[[], Sink]) -> None:
        self._sent = 0
        self._sink: Sink | None = None
        try:
            self._sink = opening()
        except TransportError as error:
            self._tell(error)

    def send(self, message: Message) -> None:
        """Hand one message on, or lose it."""
        self._sent += 1
        if self._sink is not None:
            try:
                self._sink.send(message)
            except TransportError as error:
                self._tell(error)
                self._close()

    def close(self, timeout: float | None = None) -> Delivery:
        """All counts as sent, so that the receipt is over what should have been."""
        self._close(timeout)
        return Delivery(self._sent, 0)

    def _close(self, timeout: float | None = None) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                sink.close(timeout).check()
            except TransportError as error:
                self._tell(error)

    @staticmethod
    def _tell(error: TransportError) -> None:
        sys.stderr.write(f"headwater: provenance will be partial: {error}\n")
