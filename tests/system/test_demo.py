"""The whole way of the data, as a user walks it: `headwater demo`, then the commands it names."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

from provenance_store.lake.layout import resolve, version_of
from provenance_store.lake.records import lines_of
from tests.system.conftest import World
from tests.twitter import HASHTAG, Workflow


def asked(world: World, *question: str) -> Any:
    done = world.headwater(*question, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def by_dataset(answer: dict[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in answer["records"]:
        found.setdefault(one["dataset"], set()).add(one["id"])
    return found


def test_the_demo_ends_with_a_true_answer(world: World, shown: Workflow, tmp_path: Path) -> None:
    backward = re.search(r"\$ headwater backward '(.+)'", world.said)
    forward = re.search(r"\$ headwater forward '(.+)'", world.said)
    assert backward
    assert forward
    assert " complete " in world.said
    tags = shown.tags()
    counts = {record: line.decode().split("\t")[0] for record, line in lines_of(resolve(shown.lake, shown.counts))}

    answer = asked(world, "backward", backward[1])
    assert answer["verdict"] == "complete"
    assert answer["start"] == [backward[1]]
    assert answer["direction"] == "backward"
    assert {one["id"] for one in answer["records"]} == {r for r, found in tags.items() if counts[backward[1]] in found}
    assert {one["dataset"] for one in answer["records"]} == {"tweets"}
    assert {one["depth"] for one in answer["records"]} == {1}
    assert {(e["output"], e["input"]) for e in answer["edges"]} == {(backward[1], o["id"]) for o in answer["records"]}
    assert [run["verdict"] for run in answer["runs"]] == ["complete"]

    answer = asked(world, "forward", forward[1], "--depth", "1")
    assert {one["id"] for one in answer["records"]} == {r for r, tag in counts.items() if tag in tags[forward[1]]}

    unknown = world.headwater("backward", f"lake:{shown.tweets}/part-00000.jsonl#1")
    assert unknown.returncode == 1
    assert "never seen" in unknown.stderr

    edges = "MATCH (:Record)-[e:WAS_DERIVED_FROM {run: $run}]->(r:Record) RETURN count(DISTINCT r) AS tweets"
    run = version_of(shown.lake, *shown.counts.split("/")).name
    table = asked(world, "cypher", edges, "--param", f"run={run}")
    assert table == [{"tweets": sum(bool(found) for found in tags.values())}]

    recorded = tmp_path / "stream.jsonl"
    assert world.headwater("record", "headwater.hashtag-count", "--out", str(recorded)).returncode == 0
    account = asked(world, "reduce", str(recorded), "--out", str(tmp_path / "again"), "--run", run)
    assert account["verdict"] == "complete"
    assert account["edges_out"] == sum(len(set(found)) for found in tags.values())
    again = world.headwater("merge", str(tmp_path / "again"))
    assert "nothing changed" in again.stdout, again.stdout + again.stderr
    assert world.headwater("replay", str(recorded), "--topic", "headwater.copy").returncode == 0


def test_answers_lead_over_both_dics(world: World, shown: Workflow) -> None:
    """From category totals on Spark over hashtag counts on Hadoop to the tweets, and back."""
    behind = shown.behind_totals()
    chance = random.Random(5)
    for total in chance.sample(sorted(behind), 2):
        answer = asked(world, "backward", total)
        assert answer["verdict"] == "complete"
        assert by_dataset(answer) == behind[total]
    counts = {line.decode().split("\t")[0]: record for record, line in lines_of(resolve(shown.lake, shown.counts))}
    for tweet, found in chance.sample(sorted((tweet, set(found)) for tweet, found in shown.tags().items() if found), 2):
        reached = {total for total, used in behind.items() if tweet in used["tweets"]}
        expected = {"hashtag_counts": {counts[tag] for tag in found}} | (
            {"category_totals": reached} if reached else {}
        )
        assert by_dataset(asked(world, "forward", tweet)) == expected


def test_a_person_is_forgotten(world: World, shown: Workflow) -> None:
    """From a predicate on standard input to a certificate, which holds later too, and until the person comes back."""
    tweets = resolve(shown.lake, shown.tweets)
    all_of_it = dict(lines_of(tweets))
    told = [json.loads(line) for line in all_of_it.values()]
    handle = next(tweet["handle"] for tweet in told if HASHTAG.search(tweet["text"]))
    count = sum(tweet["handle"] == handle for tweet in told)
    stays = {record: line for record, line in all_of_it.items() if json.loads(line)["handle"] != handle}

    def purge(*arguments: str, given: str | None = None, ends: int = 0) -> Any:
        done = world.headwater("purge", *arguments, "--json", given=given)
        assert done.returncode == ends, done.stdout + done.stderr
        assert handle not in done.stdout + done.stderr
        return json.loads(done.stdout)

    selected = purge("select", "--dataset", "tweets", "--where-file", "-", given=f"handle = '{handle}'")
    assert selected["datasets"] == {"tweets": count}
    plan = purge("plan", selected["id"])
    policies = {step["dataset"]: step["policy"] for step in plan["steps"]}
    assert policies["hashtag_counts"] == policies["category_totals"] == "recompute"
    refused = world.headwater("purge", "apply", plan["id"])
    assert refused.returncode == 1
    assert "not approved" in refused.stderr
    purge("approve", plan["id"], "--by", "A. Officer")
    certificate = purge("apply", plan["id"])
    assert certificate["passed"]
    assert {one["name"]: one["until"] for one in certificate["topics"]}["headwater.hashtag-count"]

    assert dict(lines_of(tweets)) == stays
    assert shown.written(shown.counts) == shown.expected_counts()
    assert shown.written(shown.totals) == shown.expected_totals()
    assert purge("verify", "1")["passed"]
    assert purge("certificates")["faults"] == []
    kept = [path for path in (shown.lake / "_purges").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if handle.encode() in path.read_bytes()]

    again = tweets.path.with_name("again")
    again.mkdir()
    (again / "part-00000.jsonl").write_bytes(b"".join(line + b"\n" for line in all_of_it.values()))
    assert len(purge("recognise", "tweets/again", ends=1)["records"]) == count
    shutil.rmtree(again)
