"""Ids of runs that follow from the DAG run, so that whoever tries again means the same run, and what became of them."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provenance_store.errors import InputError, SettingsError

# Beside the word of a run's reducer: its DIC has failed and is not tried again.
_GIVEN_UP = "given-up"
_OTHERS = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST = 100


def run_of(dic: str, dag: str, dag_run: str) -> str:
    """The run of a DIC within a DAG run: readable, and another one for any other DIC, DAG or DAG run."""
    digest = hashlib.sha256("\n".join((dic, dag, dag_run)).encode()).hexdigest()[:8]
    readable = _OTHERS.sub("-", f"{dic}-{dag_run}")[:_LONGEST].strip("-.")
    return f"{readable}-{digest}"


def run_in(context: Any, dic: str) -> str:
    """The run of a DIC within the DAG run of a task."""
    dag_run = context["dag_run"]
    return run_of(dic, dag_run.dag_id, dag_run.run_id)


def versions_that_started(context: Any) -> dict[str, str]:
    """The versions whose asset events started the DAG run, by dataset; the last event of each counts."""
    found: dict[str, str] = {}
    for events in (context.get("triggering_asset_events") or {}).values():
        for event in events:
            version = (event.extra or {}).get("version")
            if isinstance(version, str):
                found[version.partition("/")[0]] = version
    return found


@contextmanager
def given_up_at_last(context: Any, folder: Path) -> Iterator[None]:
    """Leave word, for whoever waits for the run, when what is done here fails and will not be tried again."""
    word = folder / _GIVEN_UP
    word.unlink(missing_ok=True)
    try:
        yield
    except Exception as error:
        task = context["ti"]
        if isinstance(error, (InputError, SettingsError)) or task.try_number > task.max_tries:
            folder.mkdir(parents=True, exist_ok=True)
            word.write_text(task.task_id)
        raise


def given_up(folder: Path) -> str | None:
    """Why a run will never be complete, for whoever waits for it; None where it may."""
    try:
        task = (folder / _GIVEN_UP).read_text()
    except FileNotFoundError:
        return None
    return (
        f"There is nothing to reduce: task {task} has failed and is not tried again. Its log says why; "
        "clear that task, and this one."
    )
