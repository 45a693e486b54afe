import json
from pathlib import Path

import jsonschema
import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

from provenance_store.export import openlineage
from provenance_store.export.openlineage import Namespaces, run_events, write_event
from provenance_store.graph.reduced import ReducedGraph

EDGES = [
    ("lake:totals/r1#a", "lake:counts/r0#x"),
    ("lake:totals/r1#a", "lake:counts/r0#y"),
    ("lake:totals/r1#a", "lake:categories/1#c"),
    ("lake:rest/r1#b", "lake:counts/r0#x"),
    ("lake:rest/r1#b", "http://elsewhere/x"),
]
FACETS = json.loads((Path(openlineage.__file__).parent / "facets.json").read_text())


def told(folder: Path) -> list[dict]:
    return [json.loads(write_event(event)) for event in run_events(ReducedGraph.open(folder))]


def check(event: dict) -> None:
    """Against OpenLineage's own classes, which refuse what is not theirs, and our facets against their schema."""
    known = ("eventTime", "producer", "inputs", "outputs")
    RunEvent(
        **{name: event[name] for name in known},
        eventType=RunState(event["eventType"]),
        run=Run(**event["run"]),
        job=Job(**event["job"]),
    )
    for one in event["inputs"]:
        InputDataset(**one)
    for one in event["outputs"]:
        OutputDataset(**one)
    ours = list(event["run"]["facets"].values())
    ours += [facet for one in event["inputs"] for facet in one["inputFacets"].values()]
    ours += [facet for one in event["outputs"] for facet in one["outputFacets"].values()]
    for facet in ours:
        schema, _, place = facet["_schemaURL"].partition("#")
        assert schema == FACETS["$id"]
        jsonschema.validate(facet, {**FACETS, "$ref": f"#{place}"})


def test_a_run_is_its_start_and_its_end_with_what_fed_what(reduced):
    start, end = told(reduced("r1", EDGES, dic="category-totals", messages=3))
    check(start)
    check(end)
    assert [event["eventType"] for event in (start, end)] == ["START", "COMPLETE"]
    assert start["eventTime"] < end["eventTime"]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("headwater", "category-totals")
    assert [(one["namespace"], one["name"]) for one in end["inputs"]] == [("lake", "categories"), ("lake", "counts")]
    counted = {one["name"]: one["outputFacets"]["headwater_dependencies"]["inputs"] for one in end["outputs"]}
    assert counted == {"rest": {"counts": 1}, "totals": {"categories": 1, "counts": 2}}
    read = {one["name"]: one["inputFacets"]["headwater_dependencies"]["edges"] for one in end["inputs"]}
    assert read == {"categories": 1, "counts": 3}
    fed = {
        one["name"]: [source["name"] for source in one["inputs"]] for one in end["job"]["facets"]["lineage"]["entries"]
    }
    assert fed == {"rest": ["counts"], "totals": ["categories", "counts"]}
    account = end["run"]["facets"]["headwater_account"]
    assert (account["verdict"], account["messages"], account["edges"]) == ("complete", 3, 5)


@pytest.mark.parametrize(
    ("verdict", "marks", "kind"),
    [
        ("partial", [], "COMPLETE"),  # it has ended, and its provenance has gaps
        ("unknown", [], "OTHER"),  # nobody told that it ended
        ("unknown", ["declared"], "COMPLETE"),
    ],
)
def test_the_verdict_is_told_and_no_failure_made_of_it(reduced, verdict, marks, kind):
    _, end = told(reduced("r1", EDGES, verdict=verdict, marks=marks, missing={"attempt-0": [1, 2]}))
    check(end)
    assert end["eventType"] == kind
    account = end["run"]["facets"]["headwater_account"]
    assert (account["verdict"], account["missingMessages"], account["marks"]) == (verdict, 2, marks)


def test_events_are_the_same_again_and_another_run_after_another_execution(reduced):
    folder = reduced("r1", EDGES)
    assert told(folder) == told(folder)
    (again, _) = told(reduced("r1", EDGES, name="again", generation=1))
    assert again["run"]["runId"] != told(folder)[0]["run"]["runId"]
    named = list(run_events(ReducedGraph.open(folder), Namespaces("jobs", "s3://bucket")))
    assert (named[1].job.namespace, named[1].inputs[0].namespace) == ("jobs", "s3://bucket")
