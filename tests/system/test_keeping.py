"""A stream job that Airflow keeps running: killed it goes on, its provenance is followed, its end is true."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from provenance_store.graph.queries import LakeGraph
from provenance_store.services.beside import ask_to_stop, following_folder, outcome_of, stream_folder
from provenance_store.streams.examples import find_example
from tests.airflow_client import wait
from tests.stream_oracles.item_monitor import watched
from tests.system.conftest import World

DAG, RUN = "stream_jobs", "item-monitor"
EVENTS = 2_000


@pytest.fixture
def kept(world: World) -> Iterator[None]:
    """The DAG at work, watching for less than usual."""
    variable = {"key": "headwater_stream_seconds", "value": "20"}
    assert world.engineer.ask("POST", "/variables", variable).is_success
    assert world.engineer.ask("PATCH", f"/dags/{DAG}", {"is_paused": False}).is_success
    yield
    assert world.engineer.ask("PATCH", f"/dags/{DAG}", {"is_paused": True}).is_success
    # What goes on beside Airflow goes on when it is paused.
    home = world.settings.home
    for word in (stream_folder(home, RUN), following_folder(home)):
        ask_to_stop(word)
        wait(lambda word=word: outcome_of(word) is not None, f"the end of {word}")


def runs(world: World) -> list[str]:
    """The runs of the DAG."""
    return [one["dag_run_id"] for one in world.engineer.runs(DAG)]


def tried_again(world: World) -> list[str]:
    """The runs whose job was started twice."""
    return [one for one in runs(world) if world.engineer.tasks(DAG, one)["job"]["try_number"] == 2]


def job(world: World) -> list[psutil.Process]:
    """The job in this lake, and all that it started; not what keeps it, which tells that it has ended."""
    query = f"--query={world.settings.home / 'stream_queries' / f'{RUN}.json'}"
    found = []
    for process in psutil.process_iter(["cmdline"]):
        told = process.info["cmdline"] or ()
        if query in told and "provenance_store.services.beside" not in told:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                found += [process, *process.children(recursive=True)]
    return found


def edges_told(world: World) -> int:
    """How many edges of the running query are in the lake graph."""
    with LakeGraph(world.settings) as graph:
        query = "MATCH ()-[edge:WAS_DERIVED_FROM {run: $run}]->() RETURN count(edge) AS edges"
        return int(next(iter(graph.cypher(query, {"run": RUN}).rows))[0])


def results(world: World, dataset: str) -> Counter[str]:
    files = (world.settings.lake / dataset).rglob("part-*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return Counter(json.dumps(line["content"], sort_keys=True) for line in lines)


@pytest.mark.usefixtures("kept")
def test_a_stream_job_is_kept_running_with_its_provenance(world: World) -> None:
    wait(lambda: bool(runs(world)), "the first run of stream_jobs")
    wait(lambda: edges_told(world) > 0, "live provenance in the lake graph", 480)
    killed = job(world)
    assert killed
    for process in killed:
        with suppress(psutil.NoSuchProcess):  # it has ended with another
            process.kill()
    wait(lambda: bool(tried_again(world)), "the task that watched it to be tried again", 480)
    (again,) = tried_again(world)
    wait(lambda: bool(job(world)), "the job to go on", 480)
    assert world.engineer.succeed(DAG, again)["health"]["state"] == "success"
    assert world.engineer.xcom(DAG, again, "job")["state"] == "running"

    assert world.engineer.ask("PATCH", f"/dags/{DAG}", {"is_paused": True}).is_success
    ended = world.headwater("streams", "stop", RUN)
    assert ended.returncode == 0, ended.stderr
    assert not job(world)
    query = world.settings.home / "stream_queries" / f"{RUN}.json"
    done = world.headwater("streams", "run", str(query), "--run", RUN)
    assert done.returncode == 0, done.stderr
    example = find_example(RUN)
    expected = watched(list(example.events(EVENTS, 1)))
    for sink in example.query.sinks:
        contents = Counter(json.dumps(content, sort_keys=True) for content, _ in expected[sink.stream])
        assert contents
        assert results(world, sink.dataset) == contents
