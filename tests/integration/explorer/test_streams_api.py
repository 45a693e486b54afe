"""Stream jobs by a real Airflow server: who sees what of them."""

from provenance_store.graph.audit import Audit
from tests.explorer_fixtures import ExplorerServer
from tests.item_monitor import LINES, RUN


def test_who_may_look_sees_no_contents(explorer_server: ExplorerServer, stream_run: str):
    with explorer_server.client("vera") as vera:
        jobs = vera.get("api/streams/jobs").json()
        assert [(job["run"], job["state"], job["faults"]) for job in jobs] == [(RUN, "finished", [])]
        assert vera.get("api/streams/lags").json() == {}
        found = vera.get("api/streams/results", params={"run": RUN, "dataset": "item-warnings"}).json()
        assert found["may_see_contents"] is False
        assert stream_run in [one["id"] for one in found["results"]]
        assert "ABNORMAL" not in str(found)
        sources = vera.get("api/streams/sources", params={"id": stream_run}).json()
        assert (len(sources["sources"]), sources["exact"]) == (4, True)
        assert "1769192" not in str(sources)
        assert vera.get("api/streams/replay", params={"id": stream_run}).status_code == 403


def test_who_may_purge_sees_how_a_result_came_about(explorer_server: ExplorerServer, stream_run: str):
    with explorer_server.client("uma") as uma:
        sources = uma.get("api/streams/sources", params={"id": stream_run}).json()["sources"]
        assert sorted(one["content"]["line"] for one in sources) == sorted(LINES)
        session = uma.get("api/streams/replay", params={"id": stream_run}).json()
        assert session["same"] is True
        assert session["steps"][-2]["operator"] == "visits"
    assert [entry.kind for entry in Audit(explorer_server.settings).entries(who="uma")][-2:] == [
        "stream sources",
        "stream replay",
    ]
    log = explorer_server.log.read_text()
    assert "2146425285" not in log


def test_what_is_not_there_is_told(explorer_server: ExplorerServer, stream_run: str):
    with explorer_server.client("uma") as uma:
        for path, params in (
            ("results", {"run": "nothing"}),
            ("results", {"run": "../_streams"}),
            ("results", {"run": RUN, "dataset": "tweets"}),
            ("sources", {"id": explorer_server.lake.tweets[0]}),
            ("replay", {"id": "no id"}),
        ):
            answer = uma.get(f"api/streams/{path}", params=params)
            assert answer.status_code == 400, answer.text
            assert len(answer.json()["detail"]) > 20
