import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from provenance_store.errors import InputError
from provenance_store.model.account import Account
from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.reduction.output import choose_runs, folder_of, write
from provenance_store.transport.port import Received


def reduced(*runs: str, poison: bytes | None = None) -> list[Reduced]:
    messages = []
    for run in runs:
        value = write_document(run, [("used", "run:f", "lake:a"), ("wasGeneratedBy", f"lake:{run}", "run:f")])
        messages += [
            Message.of(Headers(run, "dic", "a", 0), value),
            Message.of(Headers(run, "dic", "", 0, kind=MANIFEST), Manifest(attempts={"a": 1}).to_bytes()),
        ]
    if poison is not None:
        messages.append(Message({"run": runs[0], "attempt": "z", "seq": "0"}, poison))
    return reduce_messages(Received(message, 0, 0) for message in messages)


def test_one_run_is_written_into_the_folder_itself(tmp_path: Path) -> None:
    ((folder, account),) = write(tmp_path / "out", reduced("r1")).items()
    assert folder == tmp_path / "out"
    assert Account.read(folder) == account
    assert (account.edges_in, account.edges_local, account.edges_out, account.verdict) == (2, 1, 1, "complete")
    graph = folder / "graph.parquet"
    expected = {"output": ["lake:r1"], "input": ["lake:a"]}
    assert pq.read_table(graph).to_pydict() == pl.read_parquet(graph).to_dict(as_series=False) == expected
    assert pd.read_parquet(graph).to_dict("list") == expected
    assert not (folder / "rejected.jsonl").exists()


def test_several_runs_have_a_folder_each(tmp_path: Path) -> None:
    assert list(write(tmp_path, reduced("r1", "../r2"))) == [tmp_path / "%2E%2E%2Fr2", tmp_path / "r1"]


@pytest.mark.parametrize("run", [".", "..", "a/b", "ü", "x" * 5000])
def test_any_run_id_names_a_folder_inside(run: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, run, alone=False)
    assert folder.parent == tmp_path
    assert len(folder.name) < 256
    assert folder.name.strip(".%")


@pytest.mark.parametrize("poison", [b"not JSON \xff", b'{"used":[]}'])
def test_rejected_messages_are_kept_with_the_reason(poison: bytes, tmp_path: Path) -> None:
    write(tmp_path, reduced("r1", poison=poison))
    (line,) = map(json.loads, (tmp_path / "rejected.jsonl").read_text().splitlines())
    assert line["headers"] == {"run": "r1", "attempt": "z", "seq": "0"}
    assert line["reason"]
    assert ("value" in line) != ("value_base64" in line)
    assert Account.read(tmp_path).rejected == 1


def test_writing_again_leaves_nothing_of_before(tmp_path: Path) -> None:
    write(tmp_path, reduced("r1", poison=b"?"))
    (tmp_path / "graph.parquet").unlink()
    (tmp_path / "graph.parquet").mkdir()
    write(tmp_path, reduced("r1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["account.json", "graph.parquet"]
    write(tmp_path, reduced("r1", "r2"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r1", "r2"]


def test_a_run_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    found = reduced("r1", "r2")
    assert [one.run for one in choose_runs(found, "x.jsonl", "r2")] == ["r2"]
    with pytest.raises(InputError, match=r"x.jsonl holds no run 'r3'. It holds: r1, r2."):
        choose_runs(found, "x.jsonl", "r3")
    with pytest.raises(InputError, match="holds no message"):
        choose_runs([], "x.jsonl", None)
