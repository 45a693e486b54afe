"""Stream jobs: how they go, their results, what these were made from, and a replay of one, step by step.

Who may look sees ids and times. Contents may be personal: only who may start a purge sees them, and nothing of them is
logged. Every question about results is in the audit log under the name of the Airflow user.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Query, Response

from headwater_airflow.explorer.answers import as_json
from headwater_airflow.explorer.guards import User, is_allowed_to_purge, may_purge, may_view
from headwater_airflow.explorer.lineage import MOST_ON_A_PAGE, RecordId
from provenance_store.errors import HeadwaterError, InputError, JobError
from provenance_store.graph.audit import Audit
from provenance_store.health.streams import LAG, find_dropping, find_lagging, find_standing, live_lags
from provenance_store.settings import load_settings
from provenance_store.streams import service
from provenance_store.streams.debugging import Session
from provenance_store.streams.keeping import keeper_of
from provenance_store.streams.live_messages import topic_of

router = APIRouter(prefix="/api/streams")

# A page shows steps one by one; who needs more of them has a command.
MOST_STEPS = 5_000
T = TypeVar("T")


@router.get("/jobs", dependencies=[may_view])
def jobs() -> Response:
    """All runs of stream queries, each with what is wrong with it."""
    settings = load_settings()
    found = service.jobs(settings.home, settings.lake)
    faults: dict[str, list[str]] = {}
    for fault in (*find_standing(found), *find_dropping(settings, found)):
        faults.setdefault(fault.about, []).append(fault.sentence)
    return as_json([msgspec.to_builtins(one) | {"faults": faults.get(one.run, [])} for one in found])


@router.get("/lags", dependencies=[may_view])
def lags() -> Response:
    """Of runs under way, what their live topics hold that is not in the lake graph yet: asked of Kafka, so apart."""
    settings = load_settings()
    found = [one for one in service.jobs(settings.home, settings.lake) if one.state == "running"]
    told = live_lags(settings) if found else {}
    faults = {fault.about: [fault.sentence] for fault in find_lagging(found, told, most=LAG)}
    topics = {one.run: told.get(topic_of(one.query)) for one in found}
    return as_json({run: {"lag": lag, "faults": faults.get(run, [])} for run, lag in topics.items()})


@router.get("/results", dependencies=[may_view])
def results(
    *,
    run: Annotated[str, Query(min_length=1, max_length=500)],
    user: User,
    dataset: Annotated[str | None, Query(max_length=500)] = None,
    around: int | None = None,
    within: Annotated[int, Query(ge=0)] = service.WITHIN,
    limit: Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE)] = service.MOST,
) -> Response:
    """The newest results of a run, or those around a time."""
    settings, may = load_settings(), is_allowed_to_purge(user)

    def ask() -> list[service.Result]:
        return service.results(settings.lake, run, dataset, limit=limit, around=around, within=within, contents=may)

    found = _audited(user, "stream results", {"run": run, "contents": may}, ask, len)
    return as_json({"results": found, "may_see_contents": may})


@router.get("/sources", dependencies=[may_view])
def sources(id: RecordId, user: User) -> Response:  # noqa: A002 - the name that everyone uses for it
    """What a result was made from, with the checkpoint before each."""
    settings, may = load_settings(), is_allowed_to_purge(user)

    def ask() -> service.Sources:
        return service.sources(settings.home, settings.lake, id, keeper_of(settings), contents=may)

    found = _audited(user, "stream sources", {"id": id, "contents": may}, ask, lambda told: len(told.sources))
    return as_json(msgspec.to_builtins(found) | {"may_see_contents": may})


@router.get("/replay", dependencies=[may_view, may_purge])
def replay(id: RecordId, user: User) -> Response:  # noqa: A002 - the name that everyone uses for it
    """A result made again, step by step: all of it is contents."""
    settings = load_settings()

    def ask() -> Session:
        return service.replay(settings.home, settings.lake, id, keeper_of(settings))

    session = _audited(user, "stream replay", {"id": id}, ask, lambda told: len(told.steps))
    if len(session.steps) > MOST_STEPS:
        raise InputError(
            f"This replay has {len(session.steps):,} steps, and the explorer shows at most {MOST_STEPS:,}: see it with "
            "`headwater streams debug`."
        )
    return as_json(session)


def _audited(user: User, kind: str, asked: dict[str, Any], ask: Callable[[], T], count: Callable[[T], int]) -> T:
    audit = Audit(load_settings(), user.get_name())
    try:
        return audit.keep(kind, asked, ask, lambda told: {"found": count(told)})
    except HeadwaterError:
        raise
    except Exception as error:
        # A query's function may say anything in its error, contents too.
        raise JobError(
            f"A function of the query failed with {type(error).__name__}: see why with `headwater streams debug`."
        ) from None
