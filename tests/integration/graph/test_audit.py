"""Every question to the lake graph is written down, whatever becomes of it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from provenance_store.errors import AuditError, InputError, UnknownRecordError
from provenance_store.graph.audit import Audit
from provenance_store.graph.queries import LakeGraph
from provenance_store.graph.trace import Question
from provenance_store.settings import Settings


@pytest.fixture
def own(neo4j_service: Settings, tmp_path: Path) -> Settings:
    """The session's Neo4j with a home, and so a log, of this test's own."""
    address = {"uri": neo4j_service.neo4j_uri, "password": neo4j_service.neo4j_password()}
    return Settings(home=tmp_path / "home", neo4j=address)


@pytest.fixture
def graph(own: Settings, reduced, word: str) -> Iterator[LakeGraph]:
    with LakeGraph(own, who="alice") as graph:
        edges = [(f"lake:{word}-out/1#a", f"lake:{word}-in/1#{n}") for n in (1, 2)]
        graph.merge(reduced(f"{word}-run", edges, verdict="unknown"))
        yield graph


def test_every_kind_of_question(graph: LakeGraph, own: Settings, word: str) -> None:
    output, first, second = f"lake:{word}-out/1#a", f"lake:{word}-in/1#1", f"lake:{word}-in/1#2"
    since = datetime(2026, 1, 2, tzinfo=UTC)
    graph.backward([output], depth=3, to=f"{word}-in", sources_only=True, since=since)
    graph.forward([first])
    graph.trace(Question((output,), "backward"))
    graph.between(output, first)
    graph.common([first, second])
    graph.only_from([first, second])
    rows = len(graph.datasets())
    query = "MATCH (r:Record {id: $id}) RETURN r.dataset"
    graph.cypher(query, {"id": "someone@example.org"})
    entries = list(Audit(own).entries())
    assert {entry.who for entry in entries} == {"alice"}
    backward = {"start": [output], "depth": 3, "to": f"{word}-in", "ends_only": True, "since": "2026-01-02T00:00:00Z"}
    assert [(entry.kind, entry.asked) for entry in entries] == [
        ("backward", backward),
        ("forward", {"start": [first]}),
        ("backward", {"start": [output]}),
        ("between", {"start": [output], "source": first}),
        ("common", {"start": [first, second]}),
        ("only-from", {"start": [first, second]}),
        ("datasets", {}),
        ("cypher", {"query": query, "parameters": ["id"]}),
    ]
    assert [entry.ended for entry in entries] == [
        {"verdict": "unknown", "records": 2},
        {"verdict": "unknown", "records": 1},
        {"verdict": "unknown", "records": 2},
        {"verdict": "unknown", "records": 1},
        {"verdict": "complete", "records": 0},
        {"verdict": "unknown", "records": 1},
        {"rows": rows},
        {"rows": 0},
    ]
    assert b"someone@example.org" not in b"".join(file.read_bytes() for file in (own.home / "audit").iterdir())


def test_what_is_refused_is_written_down_too(graph: LakeGraph, own: Settings, word: str) -> None:
    with pytest.raises(UnknownRecordError):
        graph.backward([f"lake:{word}/1#none"])
    with pytest.raises(InputError):
        graph.cypher("CREATE (n:Intruder)")
    assert [entry.ended for entry in Audit(own).entries()] == [{"error": "UnknownRecordError"}, {"error": "InputError"}]


def test_no_answer_without_a_line(graph: LakeGraph, own: Settings, word: str) -> None:
    (own.home / "audit").parent.mkdir(exist_ok=True)
    (own.home / "audit").write_text("in the way")
    with pytest.raises(AuditError, match="Refused"):
        graph.backward([f"lake:{word}-out/1#a"])
