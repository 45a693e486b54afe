"""Neo4j is killed in the middle of merges; merged again, the graph is exactly right each time."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from provenance_store.errors import GraphError
from provenance_store.graph import batches
from provenance_store.graph.queries import LakeGraph
from provenance_store.services import lifecycle
from provenance_store.services.neo4j import Neo4j
from provenance_store.settings import Settings
from tests.services_fixtures import running

KILLS = int(os.environ.get("HEADWATER_TEST_KILLS", "2"))
EDGES = 4_000
BATCH = 200


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Not the session's Neo4j: this one is killed."""
    with running(tmp_path_factory.mktemp("home"), "neo4j") as settings:
        yield settings


def all_edges(graph: LakeGraph) -> Counter[tuple[str, str, str]]:
    query = "MATCH (o:Record)-[e:WAS_DERIVED_FROM]->(i:Record) RETURN o.id, i.id, e.run"
    return Counter(map(tuple, graph.cypher(query).rows))


def one(graph: LakeGraph, query: str) -> object:
    return graph.cypher(query).rows[0][0]


@pytest.mark.parametrize("number", range(KILLS))
def test_neo4j_killed_in_a_merge(mine: Settings, reduced, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_EDGES", BATCH)
    rng = random.Random(number)

    def draw(run: str) -> list[tuple[str, str]]:
        return [(f"lake:out/{run}#{rng.randrange(300)}", f"lake:in/1/f#{rng.randrange(3000)}") for _ in range(EDGES)]

    kept, replacing = set(draw("kept")), set(draw(f"run-{number}"))
    with LakeGraph(mine) as graph:
        graph.merge(reduced("kept", kept, generation=number))
        # Odd ones replace what the one before left, so that removing is interrupted too.
        run = f"run-{number // 2}"
        folder = reduced(run, replacing, generation=number)
        seen, most = threading.Semaphore(0), len(replacing) // BATCH

        def merge() -> None:
            # A merge that cannot go on after the restart by itself says so.
            with suppress(GraphError):
                graph.merge(folder, progress=lambda done, total: seen.release())

        merging = threading.Thread(target=merge)
        merging.start()
        for _ in range(rng.randrange(1, most + 2)):
            seen.acquire(timeout=60)
        merging.join(rng.random() * 0.05)
        service = Neo4j(mine)
        pid = lifecycle.status(service).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        lifecycle.up(service, print)
        merging.join()

        graph.merge(folder)
        found = all_edges(graph)
        assert set(found.values()) == {1}
        assert {edge[:2] for edge in found if edge[2] == run} == replacing
        assert {edge[:2] for edge in found if edge[2] == "kept"} == kept
        assert one(graph, "MATCH (r:Record) WHERE NOT (r)--() RETURN count(r)") == 0
        assert one(graph, "MATCH (r:Run) WHERE r.unclean OR r.staged_revision IS NOT NULL RETURN count(r)") == 0
        listed = "MATCH (b:Batch) UNWIND b.relationships AS n RETURN count(DISTINCT n)"
        assert one(graph, listed) == found.total()
        assert sum(feed.edges for feed in graph.datasets()) == found.total()
