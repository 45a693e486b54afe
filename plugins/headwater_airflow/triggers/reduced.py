"""Waits until a run is reduced, on the triggerer: no worker's slot is held meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from headwater_airflow.runs import given_up
from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from provenance_store.model.account import Account
from provenance_store.services.beside import ask_to_stop, outcome_of


class RunReducedTrigger(BaseTrigger):
    """Ends when the reducer beside a run has, and the run's own versions are there to compare with.

    All is told by folders: the reducer's word in `beside`, the account in `folder`, the markers of `versions`.
    """

    def __init__(self, *, folder: str, beside: str, versions: Sequence[str] = (), seconds: float = 1.0) -> None:
        super().__init__()
        self.folder = folder
        self.beside = beside
        self.versions = list(versions)
        self.seconds = seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again."""
        kwargs = {name: getattr(self, name) for name in ("folder", "beside", "versions", "seconds")}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: the run is reduced, or its reducer failed, or an execution came after the one that is reduced."""
        while (event := await asyncio.to_thread(self.look)) is None:
            await asyncio.sleep(self.seconds)
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        """Someone took the task away: nobody waits for the reducer any more."""
        await asyncio.to_thread(ask_to_stop, Path(self.beside))

    def look(self) -> dict[str, Any] | None:
        """What there is to tell now."""
        outcome = outcome_of(Path(self.beside))
        if outcome is None:
            return self._look_after_dic()
        if outcome.error is not None:
            return {"error": outcome.error, "kind": outcome.kind}
        return judge(Path(self.folder), list(map(Path, self.versions)))

    def _look_after_dic(self) -> dict[str, Any] | None:
        """Who waits for a run that will never be complete waits in vain."""
        beside = Path(self.beside)
        if (why := given_up(beside.parent)) is None:
            return None
        ask_to_stop(beside)
        return {"error": why, "kind": "InputError"}


def judge(folder: Path, versions: Sequence[Path]) -> dict[str, Any] | None:
    """Whether the reduced graph in a folder is of the execution that wrote the versions; None while they are not there.

    A job that dies between its manifest and its versions is executed again, and sends another manifest.
    """
    try:
        account = Account.read(folder)
    except InputError as error:
        return {"error": str(error), "kind": "JobError"}
    if account.verdict != "complete":
        return {"reduced": str(folder)}
    generations = []
    for path in versions:
        version = Version(path.parent.name, path.name, path)
        if not version.exists():
            return None
        generations.append(int(version.marker().get("generation", 0)))
    is_stale = any(generation > account.generation for generation in generations)
    return {"stale": str(folder)} if is_stale else {"reduced": str(folder)}
