from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.graph.reduced import ReducedGraph, bounded, count_feeds, dataset_name, group
from provenance_store.model.account import Account

ids = st.text("abc", min_size=1, max_size=6)


def account(**changes) -> Account:
    fields = dict.fromkeys(
        ("messages", "bytes", "edges_in", "edges_local", "edges_out", "duplicates", "discarded", "rejected"), 0
    )
    return Account(
        **{"run": "r", "dic": "d", "verdict": "complete", "missing": {}, "seconds": 0.0, **fields, **changes}
    )


@given(st.lists(st.tuples(ids, ids)), st.integers(1, 5), st.integers(1, 20))
def test_batches_hold_every_edge_once_and_are_bounded(edges, most, characters):
    batches = list(bounded(edges, most, characters))
    assert [edge for batch in batches for edge in batch] == edges
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(len(a) + len(b) for a, b in batch) <= characters


@given(st.lists(st.tuples(ids, ids)))
def test_grouping_keeps_the_set_of_edges(edges):
    rows = group(edges)
    assert [output for output, _, _ in rows] == sorted({output for output, _ in edges})
    assert [(output, source) for output, _, inputs in rows for source, _ in inputs] == sorted(set(edges))


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
    feeds = Counter()
    count_feeds([("lake:b/1#1", "lake:a/1#1"), ("lake:b/1#2", "lake:a/1#1"), ("lake:b/1#1", "run:x")], feeds)
    assert feeds == {("a", "b"): 2}


def test_a_folder_of_part_files_is_read_as_one(tmp_path):
    account().write(tmp_path)
    parts = tmp_path / "graph.parquet"
    parts.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"output": [f"o{number}"], "input": ["i"]}), parts / f"part-{number}.parquet")
    (parts / "_SUCCESS").touch()
    graph = ReducedGraph.open(tmp_path)
    assert graph.edges == 3
    assert [edge for batch in graph.batches() for edge in batch] == [("o0", "i"), ("o1", "i"), ("o2", "i")]
    assert ReducedGraph.open(tmp_path).digest == graph.digest


def test_what_is_no_reduced_graph_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"account\.json"):
        ReducedGraph.open(tmp_path)
    account().write(tmp_path)
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
        list(ReducedGraph.open(tmp_path).batches())
