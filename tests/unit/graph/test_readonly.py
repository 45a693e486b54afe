import pytest

from provenance_store.errors import InputError
from provenance_store.graph.readonly import check_plan, check_words


@pytest.mark.parametrize(
    "query",
    [
        "LOAD CSV FROM 'file:///x' AS line RETURN line",
        "RETURN COLLECT { load /* a comment */ csv FROM 'file:///x' AS line RETURN line }",
        "LOAD // a comment\n CSV FROM 'file:///x' AS line RETURN line",
        "CALL dbms.listConfig()",
        "CALL `dbms`.`listConfig`()",
        "CALL dbms . listConfig()",
        "CALL/**/dbms.components()",
        "RETURN '\\'' AS a, COLLECT { CALL dbms.components() YIELD name RETURN name }",
        "RETURN \\u0031",
        "  ",
    ],
)
def test_words_that_are_refused(query):
    with pytest.raises(InputError):
        check_words(query)


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (r:Record {id: 'LOAD CSV'}) RETURN r // CALL dbms.x()",
        "CALL db.labels()",
        "MATCH (r:Record) CALL (r) { RETURN 1 AS one } RETURN one",
        "MATCH (r:Record) CALL { RETURN 1 AS one } RETURN one",
    ],
)
def test_words_that_pass(query):
    check_words(query)


def test_a_plan_is_read_to_its_leaves():
    leaf = {"operatorType": "LoadCSV@neo4j"}
    with pytest.raises(InputError, match="LoadCSV"):
        check_plan(
            "r", {"operatorType": "ProduceResults@neo4j", "children": [{"operatorType": "Apply", "children": [leaf]}]}
        )
    with pytest.raises(InputError, match="only queries that read"):
        check_plan("rw", {"operatorType": "ProduceResults@neo4j"})
    check_plan("r", {"operatorType": "ProduceResults@neo4j"})
