import json

import pytest
from typer.testing import CliRunner

from provenance_store.cli.graph import app
from provenance_store.errors import InputError


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (n:Intruder) RETURN n",
        "MATCH (n:Record) SET n.x = 1",
        "MATCH (n:Record) DETACH DELETE n",
        "CALL { CREATE (n:Intruder) RETURN n } RETURN n",
        "CALL () { CREATE (n:Intruder) RETURN n } RETURN n",
        "FOREACH (x IN [1] | CREATE (:Intruder))",
        "CREATE INDEX intruder FOR (n:Intruder) ON n.x",
        "LOAD CSV FROM 'file:///etc/hostname' AS line RETURN line",
        "RETURN CASE WHEN true THEN COLLECT { LOAD CSV FROM 'file:///etc/hostname' AS l RETURN l } END AS l",
        "CALL dbms.components()",
        "CALL dbms.listConfig()",
        "CALL `dbms`.`components`()",
        "CALL db.clearQueryCaches()",
        "CALL db.createLabel('Intruder')",
        "SHOW USERS",
        "SHOW SETTINGS",
        "SHOW TRANSACTIONS",
        "TERMINATE TRANSACTION 'x'",
        "ALTER CURRENT USER SET PASSWORD FROM 'x' TO 'y'",
        "DROP DATABASE neo4j",
        "EXPLAIN CREATE (n:Intruder)",
        "PROFILE CREATE (n:Intruder)",
        "MATCH (n) RETURN n; CREATE (m:Intruder)",
        "\\u0043REATE (n:Intruder)",
        "not cypher",
    ],
)
def test_what_does_more_than_read_is_refused(lake_graph, query):
    with pytest.raises(InputError):
        lake_graph.cypher(query)
    assert lake_graph.cypher("MATCH (n:Intruder) RETURN count(n) AS n").rows == [[0]]


def test_reading_is_allowed(lake_graph, reduced, word):
    lake_graph.merge(reduced(f"{word}-run", [(f"lake:{word}/1#a", f"lake:{word}/1#b")]))
    table = lake_graph.cypher("MATCH (r:Record {id: $id})-[e]->(i) RETURN r, e.run AS run", {"id": f"lake:{word}/1#a"})
    assert table.columns == ["r", "run"]
    record = {"labels": ["Record"], "properties": {"id": f"lake:{word}/1#a", "dataset": word}}
    assert table.rows == [[record, f"{word}-run"]]
    assert ["Record"] in lake_graph.cypher("CALL db.labels()").rows
    assert lake_graph.cypher("SHOW INDEXES").rows


def test_the_command_line(neo4j_service, reduced, word, monkeypatch):
    monkeypatch.setenv("HEADWATER_HOME", str(neo4j_service.home))
    monkeypatch.setenv("HEADWATER_NEO4J__URI", neo4j_service.neo4j_uri)
    monkeypatch.setenv("HEADWATER_NEO4J__PASSWORD", neo4j_service.neo4j_password())
    output, source = f"lake:{word}-out/1#a", f"lake:{word}-in/1#b"
    folder = str(reduced(f"{word}-run", [(output, source)], verdict="unknown"))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    assert "1 edges merged" in run("merge", folder)
    assert not json.loads(run("merge", folder, "--json"))["changed"]
    assert json.loads(run("backward", output, "--json"))["records"] == [
        {"id": source, "dataset": f"{word}-in", "depth": 1}
    ]
    assert json.loads(run("forward", source, "--format", "json", "--sinks"))["verdict"] == "unknown"
    for form in ("tree", "table"):
        text = run("backward", output, "--sources", "--depth", "3", "--to", f"{word}-in", "--format", form)
        assert text.startswith(" unknown ")
        assert source in text
    rows = run("cypher", "MATCH (r:Run {id: $run}) RETURN r.verdict AS verdict", "--param", f"run={word}-run", "--json")
    assert json.loads(rows) == [{"verdict": "unknown"}]
    assert "verdict" in run("cypher", "RETURN 'complete' AS verdict")
