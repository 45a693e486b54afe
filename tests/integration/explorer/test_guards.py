"""Every endpoint has its guard, by Airflow's own permissions."""

import pytest

from provenance_store.purge.selection import open_selection, read_ids
from tests.explorer_fixtures import REPLAY, SELECTION, VIEWED, ExplorerServer


@pytest.mark.parametrize(("method", "path", "body"), [*VIEWED, SELECTION, REPLAY])
def test_who_is_not_logged_in_gets_nothing(explorer_server: ExplorerServer, method, path, body):
    with explorer_server.client() as nobody:
        answer = nobody.request(method, path, json=body)
    assert answer.status_code == 401
    assert answer.json() == {"detail": "Not authenticated"}


def test_no_page_describes_the_api(explorer_server: ExplorerServer):
    with explorer_server.client("ada") as ada:
        for path in ("docs", "redoc", "openapi.json"):
            assert ada.get(path).status_code == 404


def test_to_look_is_not_to_purge(explorer_server: ExplorerServer):
    body = {"by": "ids", "ids": explorer_server.lake.tweets[:2]}
    with explorer_server.client("vera") as vera:
        answer = vera.post("api/selections", json=body)
        assert answer.status_code == 403
    with explorer_server.client("uma") as uma:
        assert uma.get("api/overview").json()["may_purge"] is True
        answer = uma.post("api/selections", json=body)
        assert answer.status_code == 201
    told = answer.json()
    assert (told["datasets"], told["dag_id"]) == ({"tweets": 2}, "purge_sensitive_data")
    selection = open_selection(explorer_server.settings.lake, told["selection"])
    assert (selection.by, selection.how) == ("uma", "ids")
    assert read_ids(explorer_server.settings.lake, told["selection"]).to_list() == sorted(body["ids"])


def test_selections_by_keys_and_by_a_predicate_leave_no_trace_of_them(explorer_server: ExplorerServer):
    with explorer_server.client("uma") as uma:
        by_keys = uma.post("api/selections", json={"by": "keys", "dataset": "tweets", "keys": [["handle7"]]})
        assert by_keys.status_code == 201, by_keys.text
        body = {"by": "where", "dataset": "tweets", "where": "handle = 'handle7'"}
        by_predicate = uma.post("api/selections", json=body, timeout=300)
        assert by_predicate.status_code == 201, by_predicate.text
        assert by_predicate.json() == by_keys.json()
        lost = uma.post("api/selections", json={"by": "keys", "dataset": "tweets", "keys": [["handle99"]]})
        assert lost.status_code == 400
        assert "handle99" not in lost.text
    chosen = read_ids(explorer_server.settings.lake, by_keys.json()["selection"]).to_list()
    assert chosen == [explorer_server.lake.tweets[7]]
    for folder in (explorer_server.log.parent / "airflow", explorer_server.settings.lake / "_purges"):
        for path in folder.rglob("*"):
            assert not path.is_file() or b"handle7" not in path.read_bytes(), path
    assert "handle7" not in explorer_server.log.read_text()


@pytest.mark.parametrize(
    "body",
    [
        {"by": "ids", "ids": []},
        {"by": "guess", "ids": ["lake:a/1#1"]},
        {"by": "where", "dataset": "tweets"},
        {"by": "ids", "ids": ["lake:a/1#1"] * 10_001},
    ],
)
def test_a_selection_of_nothing_is_refused(explorer_server: ExplorerServer, body):
    with explorer_server.client("uma") as uma:
        assert uma.post("api/selections", json=body).status_code == 422
