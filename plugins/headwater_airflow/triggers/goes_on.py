"""Watches an application that is to go on: for a time, or until it has ended before."""

import time
from pathlib import Path
from typing import Any

from headwater_airflow.triggers.beside import BesideTrigger
from provenance_store.services.beside import outcome_of


class GoesOnTrigger(BesideTrigger):
    """Ends at a time, or as soon as the application has ended, which it should not have."""

    fields = ("until",)

    def __init__(self, *, until: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.until = until

    def look(self) -> dict[str, Any] | None:
        """What there is to tell now."""
        outcome = outcome_of(Path(self.beside))
        if outcome is not None:
            return {"error": outcome.error or "It ended by itself.", "kind": outcome.kind}
        return {"goes_on": self.beside} if time.time() >= self.until else None
