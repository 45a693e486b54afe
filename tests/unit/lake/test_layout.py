"""Versions: found by reference, whole or not there, never written twice."""

import os
from pathlib import Path

import pytest

from provenance_store.errors import InputError
from provenance_store.lake import layout


def make(root: Path, dataset: str, name: str) -> layout.Version:
    version = layout.version_of(root, dataset, name)
    with layout.new_version(version, {"by": "test"}) as folder:
        (folder / "part-00000").write_text("x\n")
    return version


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_version_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    version = layout.version_of(tmp_path, "tweets", "v1")
    with layout.new_version(version, {"by": "test"}) as folder:
        assert layout.list_versions(tmp_path, "tweets") == []
        (folder / "day=1").mkdir()
        (folder / "day=1" / "b").write_text("x")
        (folder / "a").write_text("x")
        (folder / "_SUCCESS").write_text("")
    assert layout.list_versions(tmp_path, "tweets") == [version]
    assert [str(path.relative_to(version.path)) for path in version.files()] == ["a", "day=1/b"]
    assert version.marker()["by"] == "test"
    assert names(version.path.parent) == ["v1"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    version = layout.version_of(tmp_path, "tweets", "v1")
    with pytest.raises(OSError, match="a missing folder"), layout.new_version(version, {}) as folder:
        (folder / "a missing folder" / "a").write_text("x")
    assert names(tmp_path / "tweets") == []


def test_a_finished_version_is_never_written_again(tmp_path: Path) -> None:
    version = make(tmp_path, "tweets", "v1")
    with pytest.raises(InputError, match="never written again"), layout.new_version(version, {}):
        pass
    late = layout.unfinished_path(version)
    late.mkdir()
    with pytest.raises(InputError, match="never written again"):
        layout.publish(late, version, {})
    layout.remove_unfinished(version)
    assert names(version.path.parent) == ["v1"]


def test_the_newest_is_the_one_made_last_even_after_an_older_was_touched(tmp_path: Path) -> None:
    older, newer = make(tmp_path, "tweets", "z"), make(tmp_path, "tweets", "a")
    os.utime(older.path, (2e9, 2e9))
    assert layout.newest_version(tmp_path, "tweets") == newer
    assert layout.resolve(tmp_path, "tweets") == newer
    assert layout.resolve(tmp_path, "tweets/z") == older
    assert layout.version_path(tmp_path, "tweets", "z") == older.path


def test_a_version_put_there_by_hand_counts_by_its_time(tmp_path: Path) -> None:
    (tmp_path / "tweets" / "mine").mkdir(parents=True)
    assert layout.resolve(tmp_path, "tweets").reference == "tweets/mine"


def test_a_wrong_reference_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no dataset 'tweets'.*Datasets there: none"):
        layout.resolve(tmp_path, "tweets")
    make(tmp_path, "orders", "v1")
    with pytest.raises(InputError, match=r"no dataset 'tweets'.*Datasets there: orders"):
        layout.resolve(tmp_path, "tweets/v1")
    with pytest.raises(InputError, match=r"no version 'v2'.*Versions there: v1"):
        layout.resolve(tmp_path, "orders/v2")


@pytest.mark.parametrize("reference", ["", "/", "tweets/", "../etc", "tweets/..", "tweets/a/b", ".hidden", "a b"])
def test_a_reference_never_leaves_the_lake(tmp_path: Path, reference: str) -> None:
    with pytest.raises(InputError, match="cannot name a"):
        layout.resolve(tmp_path, reference)
