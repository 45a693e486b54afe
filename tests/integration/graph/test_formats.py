"""An answer on the command line in every format, each read back by whoever defines it."""

import json

import pytest
from prov.model import ProvDocument
from typer.testing import CliRunner

from provenance_store.cli.graph import app


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, neo4j_service, lake_graph, reduced, word):
    """The standard output of `headwater backward` on two records that were made from a third."""
    records = [f"lake:{word}/v1#{name}" for name in ("a", "b", "c")]
    lake_graph.merge(reduced(f"{word}-run", [(records[0], records[2]), (records[1], records[2])]))
    monkeypatch.setattr("provenance_store.cli.graph.load_settings", lambda: neo4j_service)

    def run(*options: str) -> str:
        result = CliRunner().invoke(app, ["backward", *records[:2], *options], catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout

    return records, run


@pytest.mark.parametrize("form", ["prov-json", "prov-xml"])
def test_prov_is_read_by_its_own_library(ask, form: str) -> None:
    records, run = ask
    document = ProvDocument.deserialize(content=run(f"--format={form}"), format=form.removeprefix("prov-"))
    assert {str(entity.identifier) for entity in document.get_records() if "lake:" in str(entity.identifier)} >= set(
        records
    )


def test_what_others_draw_and_read(ask) -> None:
    records, run = ask
    notation = run("--format=prov-n")
    assert notation.startswith("document")
    assert notation.count("wasDerivedFrom(") == 2
    drawing = run("--format=dot")
    assert drawing.startswith("digraph")
    assert all(record in drawing for record in records)
    assert run("--format=svg").lstrip().startswith("<svg")
    assert [found["id"] for found in json.loads(run("--format=json"))["records"]] == records[2:]
