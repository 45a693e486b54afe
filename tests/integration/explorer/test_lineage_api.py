"""What the explorer tells of the lake, by a real Airflow server and a real Neo4j."""

import json

import pytest

from provenance_store.graph.audit import Audit
from tests.explorer_fixtures import BIG, TWITTER_DAG, TWITTER_RUN, ExplorerServer, LiveQuery


@pytest.fixture
def vera(explorer_server: ExplorerServer):
    with explorer_server.client("vera") as client:
        yield client


def told(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_lake_from_above(vera):
    seen = told(vera.get("api/overview"))
    assert {one["name"]: (one["records"], one["more"]) for one in seen["datasets"]} == {
        "tweets": (40, False),
        "hashtag_counts": (8, False),
        "category_totals": (2, False),
        "orders": (BIG + 204, False),
        "yearly_report": (1, False),
    }
    feeds = {(f["source"], f["target"]): (f["dic"], f["edges"], f["runs"], f["verdict"]) for f in seen["feeds"]}
    assert feeds == {
        ("tweets", "hashtag_counts"): ("hashtag-count", 40, 1, "complete"),
        ("hashtag_counts", "category_totals"): ("category-totals", 8, 1, "partial"),
        ("orders", "yearly_report"): ("yearly-report", BIG + 204, 1, "unknown"),
    }
    assert seen["may_purge"] is False


@pytest.mark.parametrize(
    ("text", "datasets", "records"),
    [
        ("TWEET", ["tweets"], 0),
        ("tweets", ["tweets"], 5),
        ("tweets/n40", ["tweets"], 5),
        ("lake:category_totals/2026-03-04#s", ["category_totals"], 1),
        ("lake:nothing/", [], 0),
        ("' OR 1=1 //", [], 0),
    ],
)
def test_search(vera, text, datasets, records):
    found = told(vera.post("api/search", json={"text": text, "limit": 5}))
    assert (found["datasets"], len(found["records"])) == (datasets, records)


def test_records_of_a_dataset_by_pages(explorer_server, vera):
    ids, after, more = [], None, True
    while more:
        found = told(vera.post("api/search", json={"dataset": "tweets", "after": after, "limit": 15}))
        ids += [one["id"] for one in found["records"]]
        after, more = ids[-1], found["more"]
    assert sorted(ids) == sorted(explorer_server.lake.tweets)
    assert ids == sorted(ids)


def test_a_record_tells_how_much_lies_on_each_side(explorer_server, vera):
    lake = explorer_server.lake
    assert told(vera.get("api/record", params={"id": lake.tags[0]})) == {
        "id": lake.tags[0],
        "purge": None,
        "state": "unknown",
        "live": [],
        "backward": {"records": 5, "verdict": "complete"},
        "forward": {"records": 1, "verdict": "partial"},
    }


def test_a_running_query_and_what_is_live_in_it(live_query: LiveQuery, vera):
    def live_feeds():
        return [
            (feed["source"], feed["target"], feed["edges"])
            for feed in told(vera.get("api/overview"))["feeds"]
            if feed["live"]
        ]

    assert live_feeds() == [("readings", "alerts", 2)]
    record = told(vera.get("api/record", params={"id": live_query.live}))
    assert record["state"] == "live"
    (own,) = record["live"]
    assert (own["run"], own["state"], own["time"], own["watermark"]) == (live_query.run, "live", 20, 50)
    assert told(vera.get("api/record", params={"id": live_query.expired}))["state"] == "expired"
    page = told(vera.get("api/neighbours", params={"id": live_query.alert, "direction": "backward"}))
    assert {one["id"]: one["state"] for one in page["records"]} == {
        live_query.live: "live",
        live_query.expired: "expired",
    }
    assert [(run["run"], run["verdict"], run["live"]) for run in page["runs"]] == [(live_query.run, "unknown", True)]
    facts = told(vera.get("api/run", params={"run": live_query.run}))
    assert (facts["live"], facts["watermark"], facts["edges"]) == (True, 50, 2)
    more = live_query.tell_more()
    forward = told(vera.get("api/neighbours", params={"id": live_query.live, "direction": "forward"}))
    assert (forward["state"], {one["id"] for one in forward["records"]}) == ("live", {live_query.alert, more})
    # Pages of before and after do not go together.
    assert forward["moment"] != page["moment"]
    assert live_feeds() == [("readings", "alerts", 3)]


def test_neighbours_with_the_run_behind_them_and_its_dag_run(explorer_server, vera):
    lake = explorer_server.lake
    with explorer_server.client("ada") as ada:
        body = {"dag_run_id": TWITTER_RUN, "logical_date": None}
        made = ada.post(f"{explorer_server.url}/api/v2/dags/{TWITTER_DAG}/dagRuns", json=body)
        assert made.status_code in {200, 409}
    page = told(vera.get("api/neighbours", params={"id": lake.total, "direction": "backward", "depth": 2, "limit": 10}))
    assert (page["verdict"], page["total"], page["more"], len(page["records"])) == ("partial", 30, 20, 10)
    assert {one["depth"] for one in page["records"][:5]} == {1}
    runs = {run["run"]: run for run in page["runs"]}
    assert runs[lake.counted]["dag_run"] == {"dag_id": TWITTER_DAG, "run_id": TWITTER_RUN}
    assert runs[lake.summed]["dag_run"] is None
    assert runs[lake.summed]["verdict"] == "partial"
    facts = told(vera.get("api/run", params={"run": lake.counted}))
    assert (facts["dic"], facts["edges"], facts["dag_run"]["run_id"]) == ("hashtag-count", 40, TWITTER_RUN)
    assert told(vera.get("api/run", params={"run": lake.summed}))["missing"] == 1
    of_dag = told(vera.get("api/overview", params={"dag": TWITTER_DAG}))
    assert [(feed["source"], feed["target"]) for feed in of_dag["feeds"]] == [("tweets", "hashtag_counts")]
    assert told(vera.get("api/overview", params={"dag": "purge_sensitive_data"}))["feeds"] == []


def test_pages_of_neighbours_lack_nothing(explorer_server, vera):
    records, edges, moments = set(), set(), set()
    for first in range(0, BIG + 204, 500):
        asked = {"id": explorer_server.lake.big, "direction": "backward", "first": first, "limit": 500}
        page = told(vera.get("api/neighbours", params=asked))
        records |= {one["id"] for one in page["records"]}
        edges |= {edge["input"] for edge in page["edges"]}
        moments.add(page["moment"])
        assert page["more"] == max(0, BIG + 204 - first - 500)
    assert len(records) == BIG + 204
    assert edges == records
    assert len(moments) == 1


@pytest.mark.parametrize(
    ("form", "begins"),
    [("json", '{"start"'), ("prov-json", "{"), ("prov-n", "document"), ("dot", "digraph"), ("svg", "<svg")],
)
def test_an_answer_as_a_file(explorer_server, vera, form, begins):
    body = {"id": explorer_server.lake.total, "direction": "backward", "format": form}
    answer = vera.post("api/export", json=body)
    assert answer.status_code == 200
    assert answer.text.startswith(begins)
    assert "attachment" in answer.headers["content-disposition"]
    if form == "json":
        assert len(json.loads(answer.text)["records"]) == 30


@pytest.mark.parametrize(
    ("path", "params", "status", "says"),
    [
        ("api/record", {"id": "lake:nothing/1#1"}, 404, "never seen"),
        ("api/neighbours", {"id": "lake:nothing/1#1", "direction": "forward"}, 404, "never seen"),
        ("api/run", {"run": "nothing"}, 404, "never seen run nothing"),
        ("api/neighbours", {"id": "lake:a/1#1", "direction": "sideways"}, 422, "direction"),
        ("api/neighbours", {"id": "lake:a/1#1", "direction": "forward", "depth": 3}, 422, "depth"),
        ("api/neighbours", {"id": "lake:a/1#1", "direction": "forward", "limit": 9999}, 422, "limit"),
    ],
)
def test_what_cannot_be_answered_is_told(vera, path, params, status, says):
    answer = vera.get(path, params=params)
    assert answer.status_code == status
    assert says in answer.json()["detail"]


def test_an_invalid_request_is_not_repeated(vera):
    answer = vera.post("api/search", json={"text": ["someone@example.org"]})
    assert answer.status_code == 422
    assert "someone" not in answer.text
    answer = vera.post("api/search", json={"text": "  "})
    assert (answer.status_code, "Type the name" in answer.json()["detail"]) == (400, True)


def test_what_was_asked_is_kept_under_the_airflow_user(explorer_server, vera):
    told(vera.post("api/search", json={"text": "someone@example.org"}))
    told(vera.get("api/record", params={"id": explorer_server.lake.total}))
    entries = list(Audit(explorer_server.settings).entries())[-6:]
    assert {entry.who for entry in entries} == {"vera"}
    assert [entry.kind for entry in entries[-4:]] == ["backward", "forward", "liveness", "buried"]
    assert "someone" not in str(entries)
    assert "someone" not in explorer_server.log.read_text()


def test_neo4j_down_is_said_at_once_and_over_when_it_is_back(explorer_server, vera):
    assert told(vera.get("api/health")) == {"neo4j": "up"}
    with explorer_server.without_neo4j():
        for path in ("api/health", "api/overview"):
            answer = vera.get(path, timeout=15)
            assert answer.status_code == 503
            assert "does not answer: run `headwater up neo4j`" in answer.json()["detail"]
    assert told(vera.get("api/health")) == {"neo4j": "up"}
