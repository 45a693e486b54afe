"""The whole way of the data, as a user walks it: `headwater demo`, then the commands it names."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provenance_store.lake.layout import newest_version
from provenance_store.lake.records import lines_of
from tests.services_fixtures import running

HASHTAG = re.compile(r"(?<!\w)#([\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+)")
Headwater = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def headwater(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headwater]:
    home = tmp_path_factory.mktemp("demo")
    with running(home, "kafka", "neo4j") as settings:
        chosen = settings.services.model_dump()
        environment = {f"HEADWATER_SERVICES__{name.upper()}": str(value) for name, value in chosen.items()}
        environment |= {"HEADWATER_HOME": str(settings.home), "HEADWATER_LAKE": str(settings.lake)}

        def call(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-c", "from provenance_store.cli.main import main; main()", *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, cwd=home
            )

        yield call


def test_the_demo_ends_with_a_true_answer(headwater: Headwater, tmp_path: Path) -> None:
    done = headwater("demo", "--count", "300", "--seed", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    backward = re.search(r"\$ headwater backward '(.+)'", done.stdout)
    forward = re.search(r"\$ headwater forward '(.+)'", done.stdout)
    assert backward
    assert forward
    assert " complete " in done.stdout

    lake = Path(_lake(headwater))
    tags = {
        record: {tag.casefold() for tag in HASHTAG.findall(json.loads(line)["text"])}
        for record, line in lines_of(newest_version(lake, "tweets"))
    }
    counts = {record: line.decode().split("\t")[0] for record, line in lines_of(newest_version(lake, "hashtag_counts"))}

    answer = json.loads(headwater("backward", backward[1], "--json").stdout)
    assert answer["verdict"] == "complete"
    assert answer["start"] == [backward[1]]
    assert answer["direction"] == "backward"
    assert {one["id"] for one in answer["records"]} == {r for r, found in tags.items() if counts[backward[1]] in found}
    assert {one["dataset"] for one in answer["records"]} == {"tweets"}
    assert {one["depth"] for one in answer["records"]} == {1}
    assert {(e["output"], e["input"]) for e in answer["edges"]} == {(backward[1], o["id"]) for o in answer["records"]}
    assert [run["verdict"] for run in answer["runs"]] == ["complete"]

    answer = json.loads(headwater("forward", forward[1], "--json").stdout)
    assert {one["id"] for one in answer["records"]} == {r for r, tag in counts.items() if tag in tags[forward[1]]}

    again = headwater("merge", str(_reduced(headwater, answer["runs"][0]["run"])))
    assert "nothing changed" in again.stdout

    unknown = headwater("backward", "lake:tweets/n300-s4/part-00000.jsonl#1")
    assert unknown.returncode == 1
    assert "never seen" in unknown.stderr

    table = headwater(
        "cypher", "MATCH (r:Record) WHERE r.dataset = $d RETURN count(r) AS n", "--param", "d=tweets", "--json"
    )
    assert json.loads(table.stdout) == [{"n": sum(bool(found) for found in tags.values())}]

    recorded = tmp_path / "stream.jsonl"
    assert headwater("record", "headwater.hashtag-count", "--out", str(recorded)).returncode == 0
    reduced = headwater("reduce", str(recorded), "--out", str(tmp_path / "again"), "--json")
    account = json.loads(reduced.stdout)
    assert account["verdict"] == "complete"
    assert account["edges_out"] == sum(len(found) for found in tags.values())
    assert headwater("replay", str(recorded), "--topic", "headwater.copy").returncode == 0


def _lake(headwater: Headwater) -> str:
    made = json.loads(headwater("generate", "tweets", "--count", "300", "--seed", "4", "--json").stdout)
    return str(Path(made["path"]).parent.parent)


def _reduced(headwater: Headwater, run: str) -> Path:
    return Path(_lake(headwater)).parent / "reduced" / run
