"""The explorer's app and its place in Airflow, without a server."""

import re

from headwater_airflow.explorer.app import app
from headwater_airflow.explorer.guards import may_purge, may_view
from headwater_airflow.explorer.plugin import ExplorerPlugin
from tests.explorer_fixtures import REPLAY, SELECTION, VIEWED


def test_every_route_is_guarded_and_among_those_that_are_tried() -> None:
    tried = {(method, f"/{path.partition('?')[0]}") for method, path, _ in [*VIEWED, SELECTION, REPLAY]}
    routes = app.routes
    assert len(routes) == len(tried)
    for route in routes:
        guards = [one.dependency for one in route.dependencies]
        assert may_view.dependency in guards, route.path
        assert (may_purge.dependency in guards) == (route.path in {"/api/selections", "/api/streams/replay"})
        pattern = re.sub(r"\{\w+\}", "[^/]+", route.path)
        assert any(method in route.methods and re.fullmatch(pattern, path) for method, path in tried), route.path


def test_the_plugin_has_a_page_in_the_navigation_and_on_dags() -> None:
    (mounted,) = ExplorerPlugin.fastapi_apps
    assert (mounted["app"], mounted["url_prefix"]) == (app, "/headwater")
    views = {view["destination"]: view for view in ExplorerPlugin.external_views}
    assert views["nav"]["href"] == "headwater/explorer"
    assert views["dag"]["href"] == "headwater/explorer?dag={DAG_ID}"
    assert len({view["url_route"] for view in views.values()}) == 2
