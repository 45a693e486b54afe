import json
from pathlib import Path

import pytest
from prov.model import ProvDocument
from typer.testing import CliRunner

from provenance_store.cli.main import app
from provenance_store.errors import InputError

EDGE = ("lake:out/1#a", "lake:in/1#b")


def headwater(*arguments: object):
    return CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize(("form", "reader"), [("prov-n", "provn"), ("prov-json", "json")])
def test_prov_to_standard_output_and_to_a_file(reduced, tmp_path: Path, form, reader):
    folder = reduced("r1", [EDGE]).parent
    (folder / "unfinished").mkdir()
    done = headwater("prov", folder, "--format", form)
    assert len(ProvDocument.deserialize(content=done.stdout, format=reader).get_records()) == 2
    assert "Left out" in done.stderr
    headwater("prov", folder, "--format", form, "--out", tmp_path / "lake.prov")
    assert (tmp_path / "lake.prov").read_text() == done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["lake.prov"]


def test_openlineage_is_a_line_an_event(reduced):
    reduced("r1", [EDGE])
    folder = reduced("r2", [EDGE]).parent
    lines = headwater("openlineage", folder, "--dataset-namespace", "s3://lake").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    assert events[1]["inputs"][0]["namespace"] == "s3://lake"


def test_a_file_that_cannot_be_written_is_told(reduced, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        headwater("prov", reduced("r1", [EDGE]), "--out", tmp_path / "no" / "folder")
