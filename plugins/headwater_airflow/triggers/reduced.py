"""Waits until a run is reduced, on the triggerer: no worker's slot is held meanwhile."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater_airflow.runs import given_up
from headwater_airflow.triggers.beside import BesideTrigger
from provenance_store.errors import InputError
from provenance_store.lake.layout import Version
from provenance_store.model.account import Account
from provenance_store.services.beside import ask_to_stop, outcome_of


class RunReducedTrigger(BesideTrigger):
    """Ends when the reducer beside a run has, and the run's own versions are there to compare with.

    All is told by folders: the reducer's word in `beside`, the account in `folder`, the markers of `versions`. It tells
    that the run is reduced, that its reducer failed, or that an execution came after the one that is reduced.
    """

    fields = ("folder", "versions")

    def __init__(self, *, folder: str, versions: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.folder = folder
        self.versions = list(versions)

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
