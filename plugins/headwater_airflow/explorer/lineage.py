"""What may be looked at: the lake from above, records by their ids, their neighbours, runs, and answers as files.

Endpoints are plain functions: FastAPI runs them in its threads, where Neo4j's driver may wait.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from headwater_airflow.explorer import dag_runs
from headwater_airflow.explorer.answers import as_json
from headwater_airflow.explorer.guards import Graph, User, is_allowed_to_purge, may_view, open_graph
from provenance_store.errors import InputError
from provenance_store.export import write_answer
from provenance_store.graph.answer import CrossedRun, Direction
from provenance_store.graph.find import dataset_prefix
from provenance_store.graph.queries import LakeGraph, settled
from provenance_store.graph.trace import Page, Question, Trace

router = APIRouter(prefix="/api")

MOST_ON_A_PAGE = 500
# A browser is no place for more, and building it would hold a thread for long.
MOST_EXPORTED = 100_000

_TYPES = {
    "json": "application/json",
    "prov-json": "application/json",
    "prov-n": "text/provenance-notation; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "svg": "image/svg+xml",
}
_ENDINGS = {"json": "json", "prov-json": "prov.json", "prov-n": "provn", "dot": "dot", "svg": "svg"}

RecordId = Annotated[str, Query(min_length=1, max_length=2_000)]
Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE)]


class SearchBody(BaseModel):
    """What someone looks for: in a body, because what people type may be personal, and addresses are logged."""

    text: str = Field(default="", max_length=2_000)
    dataset: str | None = Field(default=None, max_length=500)
    after: str | None = Field(default=None, max_length=2_000)
    limit: int = Field(default=50, ge=1, le=MOST_ON_A_PAGE)


class ExportBody(BaseModel):
    """Which answer to write, in which format."""

    id: str = Field(min_length=1, max_length=2_000)
    direction: Direction
    depth: int | None = Field(default=None, ge=1)
    to: str | None = Field(default=None, max_length=500)
    format: Literal["json", "prov-json", "prov-n", "dot", "svg"]


@router.get("/health", dependencies=[may_view, Depends(open_graph)])
def health() -> Response:
    """Whether Neo4j answers: where it does not, opening it raises the error that says so."""
    return as_json({"neo4j": "up"})


@router.get("/overview", dependencies=[may_view])
def overview(graph: Graph, user: User, dag: str | None = None) -> Response:
    """The lake from above, of all runs or of those of one DAG, and what this user may do."""
    runs = None if dag is None else dag_runs.runs_of(dag, {feed.dic for feed in graph.datasets()}, user)
    seen = graph.overview(runs=runs)
    return as_json({"datasets": seen.datasets, "feeds": seen.feeds, "may_purge": is_allowed_to_purge(user)})


@router.post("/search", dependencies=[may_view])
def search(body: SearchBody, graph: Graph) -> Response:
    """Datasets by a part of their name, records by the beginning of their id."""
    text = body.text.strip()
    if body.dataset is not None:
        datasets, prefix = [], dataset_prefix(body.dataset) + text
    elif text:
        names = {name for feed in graph.datasets() for name in (feed.source, feed.target)}
        datasets = sorted(name for name in names if _dataset_part(text).casefold() in name.casefold())
        prefix = dataset_prefix(text) if text in names else text if ":" in text else f"lake:{text}"
    else:
        raise InputError("Type the name of a dataset, or the beginning of a record's id.")
    found = graph.browse(prefix, after=body.after, limit=body.limit)
    return as_json({"datasets": datasets, "records": found.records, "more": found.more})


@router.get("/record", dependencies=[may_view])
def record(id: RecordId, graph: Graph) -> Response:  # noqa: A002 - the name that everyone uses for it
    """One record: its dataset, whether it was purged, whether running stream queries may use it, its neighbours."""
    sides: dict[Direction, Trace] = {
        "backward": graph.trace(Question((id,), "backward", 1)),
        "forward": graph.trace(Question((id,), "forward", 1)),
    }
    told = {side: {"records": len(found), "verdict": found.verdict} for side, found in sides.items()}
    (live,) = graph.liveness([id])
    return as_json({"id": id, "purge": _purges(graph, [id]).get(id), "state": live.state, "live": live.runs, **told})


@router.get("/neighbours", dependencies=[may_view])
def neighbours(
    *,
    id: RecordId,  # noqa: A002 - the name that everyone uses for it
    direction: Direction,
    graph: Graph,
    user: User,
    depth: Annotated[int, Query(ge=1, le=2)] = 1,
    first: Annotated[int, Query(ge=0)] = 0,
    limit: Limit = 25,
) -> Response:
    """A page of what a record was made from, or of what was made from it, and how many more there are."""

    def ask() -> tuple[Trace, Page]:
        found = graph.trace(Question((id,), direction, depth))
        return found, found.page(first, limit)

    found, page = settled(ask)
    ids = [record.id for record in page.records]
    purges = _purges(graph, ids)
    states = {one.id: one.state for one in graph.liveness([id, *ids])}
    return as_json(
        {
            "state": states[id],
            "verdict": found.verdict,
            "total": len(found),
            "records": [
                msgspec.to_builtins(one) | {"purge": purges.get(one.id), "state": states[one.id]}
                for one in page.records
            ],
            "more": max(0, len(found) - first - len(page.records)),
            "edges": page.edges,
            "runs": _with_dag_runs(found.runs, user),
            "moment": page.moment,
        }
    )


@router.get("/run", dependencies=[may_view])
def run(run: Annotated[str, Query(min_length=1, max_length=500)], graph: Graph, user: User) -> Response:
    """The account of one run, and the DAG run that it was made by, where there is one that this user may see."""
    facts = graph.describe_run(run)
    return as_json(msgspec.to_builtins(facts) | {"dag_run": dag_runs.find([(run, facts.dic)], user).get(run)})


@router.post("/export", dependencies=[may_view])
def export(body: ExportBody, graph: Graph) -> Response:
    """The whole answer, or so many steps of it, as a file."""

    def ask() -> bytes:
        found = graph.trace(Question((body.id,), body.direction, body.depth, body.to))
        if len(found) > MOST_EXPORTED:
            raise InputError(
                f"This answer holds {len(found):,} records, and the explorer writes at most {MOST_EXPORTED:,}: take "
                f"fewer steps or one dataset, or ask `headwater {body.direction} --format {body.format}`."
            )
        answer = found.answer()
        return answer.to_json() if body.format == "json" else write_answer(answer, body.format).encode()

    name = f"{body.direction}.{_ENDINGS[body.format]}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return Response(settled(ask), media_type=_TYPES[body.format], headers=headers)


def _dataset_part(text: str) -> str:
    return text.removeprefix("lake:").partition("/")[0]


def _purges(graph: LakeGraph, ids: Sequence[str]) -> dict[str, str]:
    return {tombstone.id: tombstone.purge for tombstone in graph.buried(ids)} if ids else {}


def _with_dag_runs(runs: list[CrossedRun], user: User) -> list[dict[str, Any]]:
    found = dag_runs.find([(one.run, one.dic) for one in runs], user)
    return [msgspec.to_builtins(one) | {"dag_run": found.get(one.run)} for one in runs]
