"""Which DAG run a run of a DIC was made by: a run's id follows from the DAG run's, so it is found and then proved."""

from collections.abc import Iterable

from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi import HTTPException
from sqlalchemy import or_, select

from headwater_airflow.explorer.guards import User, is_allowed_to_see_runs
from headwater_airflow.runs import run_of

# On a DAG's page, its latest runs.
MOST_RUNS = 1_000
_MOST_ASKED = 500


def find(runs: Iterable[tuple[str, str]], user: User) -> dict[str, dict[str, str]]:
    """Of runs, each with its DIC, those that a DAG run made which this user may see."""
    asked = list(runs)[:_MOST_ASKED]
    patterns = {pattern for run, dic in asked if (pattern := _pattern(run, dic))}
    if not patterns:
        return {}
    with create_session() as session:
        candidates = session.execute(
            select(DagRun.dag_id, DagRun.run_id).where(
                or_(*(DagRun.run_id.like(pattern, escape="\\") for pattern in sorted(patterns)))
            )
        ).all()
    allowed = {dag_id: is_allowed_to_see_runs(user, dag_id) for dag_id in {dag_id for dag_id, _ in candidates}}
    made = {
        run_of(dic, dag_id, run_id): {"dag_id": dag_id, "run_id": run_id}
        for dag_id, run_id in candidates
        if allowed[dag_id]
        for dic in {dic for _, dic in asked}
    }
    return {run: made[run] for run, _ in asked if run in made}


def runs_of(dag_id: str, dics: Iterable[str], user: User) -> list[str]:
    """The ids that runs of DICs have, or would have, which the latest runs of a DAG made."""
    if not is_allowed_to_see_runs(user, dag_id):
        raise HTTPException(403, f"You may not see the runs of {dag_id}.")
    latest = select(DagRun.run_id).where(DagRun.dag_id == dag_id).order_by(DagRun.run_after.desc()).limit(MOST_RUNS)
    with create_session() as session:
        run_ids = session.scalars(latest).all()
    return [run_of(dic, dag_id, run_id) for dic in sorted(set(dics)) for run_id in run_ids]


def _pattern(run: str, dic: str) -> str | None:
    """What the DAG run's id looks like: in a run's id it stands behind the DIC, with dashes for odd letters."""
    begin, _, _ = run.rpartition("-")
    _, found, readable = begin.partition(run_of(dic, "", "").rpartition("-")[0] + "-")
    if not found or not readable:
        return None
    return "%" + readable.replace("\\", "\\\\").replace("_", "\\_").replace("-", "%") + "%"
