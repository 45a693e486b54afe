"""What watches an application that goes on beside, on the triggerer: no worker's slot is held meanwhile."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent

from provenance_store.services.beside import ask_to_stop


class BesideTrigger(BaseTrigger):
    """Looks every so many seconds until there is something to tell. The application leaves word in `beside`."""

    # What a subclass is made of besides, by the names of its arguments and attributes.
    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, beside: str, seconds: float = 1.0) -> None:
        super().__init__()
        self.beside = beside
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again."""
        kwargs = {name: getattr(self, name) for name in (*self.fields, "beside", "seconds")}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: what there is to tell, once there is."""
        while (event := await asyncio.to_thread(self.look)) is None:
            await asyncio.sleep(self.seconds)
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        """Someone took the task away: what it watched is to end with it."""
        await asyncio.to_thread(ask_to_stop, Path(self.beside))

    @abstractmethod
    def look(self) -> dict[str, Any] | None:
        """What there is to tell now."""
