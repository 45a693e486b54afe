from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.graph import batches as module
from provenance_store.graph.batches import Batch, batches_of
from provenance_store.graph.reduced import EDGES, ReducedGraph, dataset_name
from provenance_store.model.account import Account

ids = st.text("abc", min_size=1, max_size=6)


def account(**changes) -> Account:
    fields = dict.fromkeys(
        ("messages", "bytes", "edges_in", "edges_local", "edges_out", "duplicates", "discarded", "rejected"), 0
    )
    return Account(
        **{"run": "r", "dic": "d", "verdict": "complete", "missing": {}, "seconds": 0.0, **fields, **changes}
    )


def edges_of(batch: Batch) -> list[tuple[str, str]]:
    return [(batch.records[o], batch.records[i]) for o, i in zip(batch.outputs, batch.inputs, strict=True)]


def batch_of(edges: list[tuple[str, str]]) -> Batch:
    return Batch.of(0, pa.table([[e[0] for e in edges], [e[1] for e in edges]], EDGES))


def write(folder: Path, edges: list[tuple[str, str]], row_group_size: int | None = None) -> Path:
    account(edges_out=len(edges)).write(folder)
    table = pa.table({"output": pa.array([e[0] for e in edges], pa.string()), "input": [e[1] for e in edges]})
    pq.write_table(table, folder / "graph.parquet", row_group_size=row_group_size)
    return folder


@given(st.lists(st.tuples(ids, ids), min_size=1), st.integers(1, 5), st.integers(1, 20), st.integers(1, 4))
def test_batches_hold_every_edge_once_and_are_bounded(edges, most, most_bytes, group):
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(module, "BATCH_EDGES", most)
        patch.setattr(module, "BATCH_BYTES", most_bytes)
        batches = list(batches_of(ReducedGraph.open(write(Path(folder), edges, group))))
    assert [edge for batch in batches for edge in edges_of(batch)] == edges
    assert [batch.first for batch in batches] == [0, *(batch.end for batch in batches)][:-1]
    for batch in batches:
        assert batch.records == sorted(set(batch.records))
        assert 1 <= len(batch.outputs) <= most
        assert len(batch.outputs) == 1 or sum(len(a) + len(b) for a, b in edges_of(batch)) <= most_bytes


@given(st.lists(st.tuples(ids, ids), min_size=1), st.data())
def test_a_batch_is_written_as_a_set_and_from_any_edge_on(edges, data):
    start = data.draw(st.integers(0, len(edges)))
    given = batch_of(edges).beyond(start).parameters()
    records = given["records"]
    written = [(records[o], records[i]) for o, i in zip(given["outputs"], given["inputs"], strict=True)]
    assert sorted(written) == sorted(set(edges[start:]))
    assert [source for _, source in written] == sorted(source for _, source in written)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ("lake:tweets/v1/f#0", "tweets"),
        ("lake:tweets#0", "tweets"),
        ("lake:a%2Fb/v1#k", "a/b"),
        ("lake:caf%E9/v1#k", "caf%E9"),
        ("lake:/v1#k", None),
        ("run:x", None),
        ("plain", None),
    ],
)
def test_dataset_of_an_id(record, name):
    assert dataset_name(record) == name


def test_feeds_count_derivations_between_datasets():
    edges = [("lake:b/1#1", "lake:a/1#1"), ("lake:b/1#2", "lake:a/1#1"), ("lake:b/1#1", "run:x")]
    assert batch_of([*edges, edges[0]]).feeds() == {("a", "b"): 2}


def test_a_graph_that_is_not_what_its_account_says_is_refused(tmp_path):
    write(tmp_path, [("o", "i")])
    account(edges_out=2).write(tmp_path)
    with pytest.raises(InputError, match="holds 1 edges, and its account counts 2"):
        ReducedGraph.open(tmp_path)


def test_a_folder_of_part_files_is_read_as_one(tmp_path):
    account(edges_out=3).write(tmp_path)
    parts = tmp_path / "graph.parquet"
    parts.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"output": [f"o{number}"], "input": ["i"]}), parts / f"part-{number}.parquet")
    (parts / "_SUCCESS").touch()
    graph = ReducedGraph.open(tmp_path)
    assert graph.edges == 3
    (batch,) = batches_of(graph)
    assert edges_of(batch) == [("o0", "i"), ("o1", "i"), ("o2", "i")]
    assert ReducedGraph.open(tmp_path).digest() == graph.digest()


def test_what_is_no_reduced_graph_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"account\.json"):
        ReducedGraph.open(tmp_path)
    account(edges_out=1).write(tmp_path)
    with pytest.raises(InputError, match="missing"):
        ReducedGraph.open(tmp_path)
    (tmp_path / "graph.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        ReducedGraph.open(tmp_path)
    pq.write_table(pa.table({"output": ["o"]}), tmp_path / "graph.parquet")
    with pytest.raises(InputError, match="no column input"):
        ReducedGraph.open(tmp_path)
    pq.write_table(pa.table({"output": ["o"], "input": pa.array([None], pa.string())}), tmp_path / "graph.parquet")
    with pytest.raises(InputError, match="without an end"):
        list(batches_of(ReducedGraph.open(tmp_path)))
