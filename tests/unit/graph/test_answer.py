import json

from provenance_store.graph.answer import Answer, AnsweredEdge, AnsweredRecord, CrossedRun


def test_the_json_is_the_contracts():
    answer = Answer(
        start=["lake:counts/1#a"],
        direction="backward",
        verdict="unknown",
        records=[AnsweredRecord("lake:tweets/1/f#0", "tweets", 1), AnsweredRecord("urn:x:1", None, 2)],
        edges=[AnsweredEdge("lake:counts/1#a", "lake:tweets/1/f#0", "run-1")],
        runs=[CrossedRun("run-1", "hashtag-count", "unknown")],
    )
    assert json.loads(answer.to_json()) == {
        "start": ["lake:counts/1#a"],
        "direction": "backward",
        "verdict": "unknown",
        "records": [
            {"id": "lake:tweets/1/f#0", "dataset": "tweets", "depth": 1},
            {"id": "urn:x:1", "dataset": None, "depth": 2},
        ],
        "edges": [
            {
                "output": "lake:counts/1#a",
                "input": "lake:tweets/1/f#0",
                "run": "run-1",
                "known": "captured",
                "exact": True,
            }
        ],
        "runs": [{"run": "run-1", "dic": "hashtag-count", "verdict": "unknown"}],
    }
