"""From what is looked at to a purge: a selection, which needs more than the right to look."""

import sys
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headwater_airflow.explorer.guards import PURGE_DAG, User, may_purge, may_view
from provenance_store.purge.selection import Selection, open_selection, select_ids, select_keys
from provenance_store.services.application import listen
from provenance_store.settings import load_settings

router = APIRouter(prefix="/api")

MOST_SELECTED = 10_000


class ByIds(BaseModel):
    """The records with these ids."""

    by: Literal["ids"]
    ids: list[str] = Field(min_length=1, max_length=MOST_SELECTED)


class ByKeys(BaseModel):
    """The records of a dataset that have one of these keys, in all its versions."""

    by: Literal["keys"]
    dataset: str
    keys: list[tuple[str, ...]] = Field(min_length=1, max_length=MOST_SELECTED)


class ByPredicate(BaseModel):
    """The records of a dataset for which a Spark SQL expression is true, in all its versions."""

    by: Literal["where"]
    dataset: str
    where: str = Field(min_length=1, max_length=10_000)


@router.post("/selections", dependencies=[may_view, may_purge])
def select(body: Annotated[ByIds | ByKeys | ByPredicate, Field(discriminator="by")], user: User) -> Response:
    """Select records for a purge; the answer names the selection, which is all that the purge's DAG has to know.

    Keys and predicates may be personal: they come in the body, and nothing of them is logged or kept.
    """
    settings, who = load_settings(), user.get_name()
    match body:
        case ByIds():
            selection = select_ids(settings, body.ids, by=who)
        case ByKeys():
            selection = select_keys(settings, body.dataset, body.keys, by=who)
        case ByPredicate():
            selection = _select_where(body, who)
    told = {"selection": selection.id, "datasets": selection.datasets, "dag_id": PURGE_DAG}
    return Response(msgspec.json.encode(told), 201, media_type="application/json")


def _select_where(body: ByPredicate, who: str) -> Selection:
    command = [sys.executable, "-m", "spark_apps.purge.select", f"--dataset={body.dataset}", f"--by={who}"]
    (told,) = listen(command, "The selection", lambda _: None, given=body.where)
    return open_selection(load_settings().lake, str(told["selection"]))
