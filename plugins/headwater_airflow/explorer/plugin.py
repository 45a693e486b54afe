"""The explorer's place in Airflow: its app under `/headwater`, an entry in the navigation, a tab on every DAG."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from headwater_airflow.explorer.app import app

PREFIX = "/headwater"
# No slash at the beginning, because Airflow may stand under any path; none at the end, which Airflow's own address of
# the page would lose.
PAGE = "headwater/explorer"
ICONS = {"icon": "headwater/icon.svg", "icon_dark_mode": "headwater/icon-dark.svg"}


class ExplorerPlugin(AirflowPlugin):
    """Registered by the entry point `airflow.plugins`."""

    name = "headwater_explorer"
    fastapi_apps: list[Any] = [{"app": app, "url_prefix": PREFIX, "name": "Headwater explorer"}]  # noqa: RUF012 - Airflow's
    external_views: list[Any] = [  # noqa: RUF012 - Airflow's
        {
            "name": "Lineage",
            "href": PAGE,
            "destination": "nav",
            "category": "browse",
            "url_route": "lineage",
            **ICONS,
        },
        {
            "name": "Lineage",
            "href": f"{PAGE}?dag={{DAG_ID}}",
            "destination": "dag",
            "url_route": "dag-lineage",
            **ICONS,
        },
    ]
