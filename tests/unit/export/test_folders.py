import pytest

from provenance_store.errors import InputError
from provenance_store.export.folders import find_graphs

EDGE = ("lake:out/1#a", "lake:in/1#b")


def test_a_folder_of_folders_gives_the_newest_generation_of_each_run(reduced, tmp_path):
    reduced("b", [EDGE], name="b-old")
    reduced("b", [], name="b-new", generation=2)
    reduced("a", [EDGE])
    (tmp_path / "reduced" / "unfinished").mkdir()
    found = find_graphs([tmp_path / "reduced", tmp_path / "reduced" / "a"])
    assert [(graph.account.run, graph.account.generation) for graph in found.graphs] == [("a", 0), ("b", 2)]
    assert [folder.name for folder in found.unfinished] == ["unfinished"]
    assert [list(graph.pairs()) for graph in found.graphs] == [[([EDGE[0]], [EDGE[1]])], []]


def test_a_copy_counts_once_and_a_contradiction_is_refused(reduced, tmp_path):
    reduced("a", [EDGE], name="one", seconds=1.0)
    reduced("a", [EDGE], name="two", seconds=2.0)
    assert len(find_graphs([tmp_path / "reduced"]).graphs) == 1
    reduced("a", [EDGE], name="three", verdict="partial")
    with pytest.raises(InputError, match="both generation 0 of run a"):
        find_graphs([tmp_path / "reduced"])


def test_what_is_no_reduced_graph_is_told(reduced, tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        find_graphs([tmp_path / "nothing"])
    with pytest.raises(InputError, match="No reduced graph"):
        find_graphs([tmp_path])
    with pytest.raises(InputError, match="holds 1 edges, and its account counts 2"):
        find_graphs([reduced("a", [EDGE], edges_out=2)])
    folder = reduced("b", [EDGE])
    (folder / "graph.parquet").write_bytes(b"not Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        find_graphs([folder])
