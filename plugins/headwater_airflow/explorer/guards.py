"""Who may do what, by Airflow's own permissions, and the lake graph asked in the name of who does it."""

from collections.abc import Iterator
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_asset, requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Depends

from provenance_store.graph.queries import LakeGraph
from provenance_store.settings import load_settings

PURGE_DAG = "purge_sensitive_data"

# Lineage tells of datasets, which are assets in Airflow: who may read assets may look.
may_view = Depends(requires_access_asset("GET"))
# A selection is the first step of a purge: who may start the purge's DAG may make one.
may_purge = Depends(requires_access_dag("POST", DagAccessEntity.RUN, PURGE_DAG))


def open_graph(user: GetUserDep) -> Iterator[LakeGraph]:
    """The lake graph, asked for this user.

    A connection for each request: one that was kept would try for minutes to reach a Neo4j that has gone.
    """
    with LakeGraph(load_settings(), who=user.get_name()) as graph:
        yield graph


Graph = Annotated[LakeGraph, Depends(open_graph)]
User = GetUserDep


def is_allowed_to_purge(user: BaseUser) -> bool:
    """Whether `may_purge` would let this user pass, so that the page does not offer what would be refused."""
    return _is_authorized(user, PURGE_DAG, "POST")


def is_allowed_to_see_runs(user: BaseUser, dag_id: str) -> bool:
    """Whether this user may read the runs of a DAG."""
    return _is_authorized(user, dag_id, "GET")


def _is_authorized(user: BaseUser, dag_id: str, method: str) -> bool:
    return get_auth_manager().is_authorized_dag(
        method=method,  # type: ignore[arg-type] # ResourceMethod is private to Airflow
        access_entity=DagAccessEntity.RUN,
        details=DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id)),
        user=user,
    )
