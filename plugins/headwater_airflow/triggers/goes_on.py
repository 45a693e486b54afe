"""Watches an application that goes on beside, on the triggerer: no worker's slot is held meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from provenance_store.services.beside import ask_to_stop, outcome_of


class GoesOnTrigger(BaseTrigger):
    """Ends at a time, or as soon as the application that leaves word in `beside` has ended before."""

    def __init__(self, *, beside: str, until: float, seconds: float = 1.0) -> None:
        super().__init__()
        self.beside = beside
        self.until = until
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again."""
        kwargs = {name: getattr(self, name) for name in ("beside", "until", "seconds")}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: it goes on, or it has ended, which it should not have."""
        while (event := await asyncio.to_thread(self.look)) is None:
            await asyncio.sleep(self.seconds)
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        """Someone took the task away: it is to end with it."""
        await asyncio.to_thread(ask_to_stop, Path(self.beside))

    def look(self) -> dict[str, Any] | None:
        """What there is to tell now."""
        outcome = outcome_of(Path(self.beside))
        if outcome is not None:
            return {"error": outcome.error or "It ended by itself.", "kind": outcome.kind}
        return {"goes_on": self.beside} if time.time() >= self.until else None
