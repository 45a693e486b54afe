"""A lake graph of an earlier release is brought to this one's schema, with all that is in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from provenance_store.errors import GraphError
from provenance_store.graph import schema
from provenance_store.graph.connection import Connection
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.schema import SCHEMA_VERSION, STEPS, ensure_schema
from provenance_store.settings import Settings
from tests.services_fixtures import running

FIRST = (Path(__file__).parent / "schema_1_lake.cypher").read_text()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Settings]:
    """Version 1 as its release wrote it: a whole run that was replaced once, one left half-way, and a declared one."""
    with running(tmp_path / "home", "neo4j") as settings:
        connection = Connection(settings)
        STEPS[0](connection)
        for statement in FIRST.split(";\n"):
            connection.write(lambda tx, text=statement: tx.run(text).consume())
        connection.close()
        yield settings


def test_from_version_1_with_data(lake: Settings, reduced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_BATCH_EDGES", 2)
    connection = Connection(lake)
    # Cut off after the data and before the version: the step is taken again.
    monkeypatch.setattr(schema, "_run_all", lambda *_: (_ for _ in ()).throw(ConnectionResetError()))
    with pytest.raises(ConnectionResetError):
        ensure_schema(connection)
    monkeypatch.undo()
    ensure_schema(connection)
    ensure_schema(connection)
    connection.close()

    with LakeGraph(lake) as graph:
        assert graph.cypher("MATCH (l:LakeGraph) RETURN l.schema").rows == [[SCHEMA_VERSION]]
        indexes = {row[0] for row in graph.cypher("SHOW INDEXES YIELD name").rows}
        assert indexes >= {"batch_of_run", "version_id", "pruned_run", "live_progress"}
        assert "derivation_of_run" not in indexes
        listed = (
            "MATCH (b:Batch) UNWIND b.relationships AS n RETURN b.run, b.revision, count(n) ORDER BY b.run, b.revision"
        )
        assert graph.cypher(listed).rows == [["declared", 1, 1], ["half", 1, 2], ["whole", 1, 1], ["whole", 2, 3]]
        answer = graph.backward(["lake:out/1#a"])
        assert [record.id for record in answer.records] == ["lake:in/1#1", "lake:in/1#2", "lake:in/1#3"]
        assert answer.verdict == "complete"
        assert [record.id for record in graph.forward(["lake:in/1#9"]).records] == ["lake:in/2"]

        # What was left unclean is made up for, and what was left half-way is begun anew.
        graph.merge(reduced("whole", [("lake:out/1#a", "lake:in/1#1")], generation=2))
        graph.merge(reduced("half", [("lake:half/1#h", "lake:in/1#1")]))
        edges = graph.cypher("MATCH (o)-[e:WAS_DERIVED_FROM]->(i) RETURN o.id, i.id, e.run ORDER BY e.run").rows
        assert edges == [
            ["lake:in/2", "lake:in/1", "declared"],
            ["lake:half/1#h", "lake:in/1#1", "half"],
            ["lake:out/1#a", "lake:in/1#1", "whole"],
        ]


def test_a_later_schema_is_refused_by_merge_and_questions(lake: Settings, reduced) -> None:
    connection = Connection(lake)
    connection.write(lambda tx: tx.run("MATCH (l:LakeGraph) SET l.schema = 99").consume())
    connection.close()
    with LakeGraph(lake) as graph:
        for ask in (
            lambda: graph.merge(reduced("r", [("lake:a/1#a", "lake:b/1#b")])),
            lambda: graph.backward(["lake:out/1#a"]),
        ):
            with pytest.raises(GraphError, match="update Headwater"):
                ask()
