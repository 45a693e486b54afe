"""From ids to lines and back, in plain, compressed and rewritten files."""

import gzip
from pathlib import Path

import pytest
import zstandard

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.places import TAKEN_OUT, Places
from provenance_store.lake.records import lines_of, read_line

PACKED = {"a.txt": bytes, "b c.txt.gz": gzip.compress, "d.txt.zst": zstandard.compress}


def put(root: Path, content: bytes, rewritten: Places | None = None) -> layout.Version:
    version = layout.version_of(root, "words", "v1")
    with layout.new_version(version, {}) as folder:
        for name, pack in PACKED.items():
            (folder / name).write_bytes(pack(content))
    if rewritten is not None:
        for file in version.files():
            rewritten.write(version, file)
    return version


def test_a_line_is_found_by_the_id_that_it_is_listed_under(tmp_path: Path) -> None:
    lines = list(lines_of(put(tmp_path, "é\n\nb\r\nlast".encode())))
    assert lines[:4] == [
        ("lake:words/v1/a.txt#0", "é".encode()),
        ("lake:words/v1/a.txt#3", b""),
        ("lake:words/v1/a.txt#4", b"b\r"),
        ("lake:words/v1/a.txt#7", b"last"),
    ]
    assert len(lines) == 12
    for record, line in lines:
        assert read_line(tmp_path, record) == line


def test_ids_outlive_a_rewrite(tmp_path: Path) -> None:
    # Was: one, two, an empty line, three. Two was taken out, the last became longer, and one came.
    places = Places.unmoved(15).rewritten([0, 4, 8, 9], [0, TAKEN_OUT, 4, 5], end=22, appended=[18])
    lines = list(lines_of(put(tmp_path, b"one\n\nthree longer\nnew\n", places)))
    assert [(record.rpartition("#")[2], line) for record, line in lines[:4]] == [
        ("0", b"one"), ("8", b""), ("9", b"three longer"), ("15", b"new"),
    ]  # fmt: skip
    for record, line in lines:
        assert read_line(tmp_path, record) == line
    for name in ("a.txt", "b%20c.txt.gz", "d.txt.zst"):
        with pytest.raises(InputError, match="was taken out of"):
            read_line(tmp_path, f"lake:words/v1/{name}#4")


@pytest.mark.parametrize("position", [1, 4, 99])
def test_where_no_line_begins_there_is_none(tmp_path: Path, position: int) -> None:
    put(tmp_path, b"one\n")
    for name in ("a.txt", "b%20c.txt.gz", "d.txt.zst"):
        with pytest.raises(InputError, match=f"No line begins at byte {position}"):
            read_line(tmp_path, f"lake:words/v1/{name}#{position}")


def test_an_id_that_leads_nowhere_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_line(tmp_path, "lake:words/v1/a.txt#0")
    with pytest.raises(InputError, match="by a key"):
        read_line(tmp_path, "lake:words/v1#a")


def test_a_file_changed_without_its_places_is_noticed(tmp_path: Path) -> None:
    places = Places.unmoved(8).rewritten([0, 4], [TAKEN_OUT, 0], end=4)
    version = put(tmp_path, b"one\ntwo\n", places)
    with pytest.raises(InputError, match="changed without its places"):
        list(lines_of(version))
