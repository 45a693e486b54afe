"""A version and its draft: files shared until they are rewritten, and a switch that a crash cannot tear."""

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from provenance_store.errors import InputError
from provenance_store.lake import drafts, layout
from provenance_store.lake.contents import all_lines, all_rows
from provenance_store.lake.drafts import begin_draft, discard, draft_of, switch, was_switched
from provenance_store.lake.layout import Version
from provenance_store.lake.rewriting import LineEdit, RowEdit, rewrite

PURGE = "p-0123456789abcdef"
OLD, NEW = [b"one", b"two", b"three"], [b"one", b"three"]


class DeadError(Exception):
    """The process died here."""


@pytest.fixture
def version(tmp_path: Path) -> Version:
    return make(tmp_path)


def make(root: Path) -> Version:
    version = layout.version_of(root, "words", "v1")
    with layout.new_version(version, {"run": "r1"}) as folder:
        (folder / "a.txt").write_bytes(b"one\ntwo\nthree\n")
        (folder / "day=1").mkdir(mode=0o750)
        (folder / "day=1" / "b.txt").write_bytes(b"untouched\n")
        (folder / "_note").write_bytes(b"kept\n")
    return version


@pytest.fixture(params=["in one step", "by turns"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by turns":
        monkeypatch.setattr(drafts, "_exchange", lambda *_: False)
    return str(request.param)


def write_draft(version: Version) -> Version:
    draft = begin_draft(version, PURGE)
    rewrite(version, "a.txt", LineEdit(removed=[4]), draft)
    return draft


def lines_in(version: Version) -> list[bytes]:
    return [line for _, lines in all_lines(version, "a.txt") for line in lines]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_draft_shares_files_and_never_writes_through(version: Version) -> None:
    before = listing(version.path)
    made = version.sort_key()
    draft = write_draft(version)
    assert listing(version.path) == before
    assert (draft.path / "day=1" / "b.txt").samefile(version.path / "day=1" / "b.txt")
    assert (draft.path / "_note").samefile(version.path / "_note")
    assert stat.S_IMODE((draft.path / "day=1").stat().st_mode) == stat.S_IMODE((version.path / "day=1").stat().st_mode)
    assert layout.list_versions(version.path.parent.parent, "words") == [version]
    rewrite(version, "a.txt", LineEdit(removed=[4]), draft)
    assert listing(version.path) == before
    switch(version, draft)
    assert listing(draft.path) == before
    assert lines_in(version) == NEW
    assert version.sort_key() == made
    assert version.marker().items() >= {"run": "r1", "purged": [PURGE]}.items()

    # The second rewrite shares the places of the first until it writes its own.
    before = listing(version.path)
    again = begin_draft(version, "p-2")
    rewrite(version, "a.txt", LineEdit(changed={8: b"drei"}), again)
    assert listing(version.path) == before
    switch(version, again)
    assert lines_in(version) == [b"one", b"drei"]
    assert version.marker()["purged"] == [PURGE, "p-2"]


def test_a_version_without_a_marker_keeps_its_order(tmp_path: Path) -> None:
    for number, name in enumerate(["late", "early"]):
        folder = layout.version_path(tmp_path, "words", name)
        folder.mkdir(parents=True)
        (folder / "a.txt").write_bytes(b"one\n")
        os.utime(folder, (2e9 - number, 2e9 - number))
    early, late = layout.list_versions(tmp_path, "words")
    assert (early.name, late.name) == ("early", "late")
    switch(early, begin_draft(early, PURGE))
    assert [one.name for one in layout.list_versions(tmp_path, "words")] == ["early", "late"]


def test_a_draft_begun_before_is_thrown_away(version: Version) -> None:
    draft = begin_draft(version, PURGE)
    (draft.path / "left.txt").write_bytes(b"half")
    assert listing(begin_draft(version, PURGE).path).keys() == listing(version.path).keys()


def test_switching_again_does_nothing(version: Version, way: str) -> None:
    draft = write_draft(version)
    assert not was_switched(version, PURGE)
    switch(version, draft)
    now = listing(version.path)
    switch(version, draft_of(version, PURGE))
    assert was_switched(version, PURGE)
    assert listing(version.path) == now
    discard(draft)
    switch(version, draft)
    assert listing(version.path) == now
    assert list(version.path.parent.iterdir()) == [version.path]
    with pytest.raises(InputError, match="went through purge"):
        begin_draft(version, PURGE)


def whole_purge(version: Version) -> None:
    """As a purge goes about it, also after a crash."""
    draft = draft_of(version, PURGE)
    if not version.exists():
        switch(version, draft)
    if not was_switched(version, PURGE):
        switch(version, write_draft(version))
    discard(draft)


@contextmanager
def dying_at(number: int, when: str) -> Iterator[None]:
    """The process dies at the call of that number that changes the disk, before or after it is done."""
    calls = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            # Who is dead clears nothing away.
            if calls > number or (calls == number and when == "before"):
                raise DeadError
            done = real(*args, **kwargs)
            if calls == number:
                raise DeadError
            return done

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "replace", "unlink", "link", "mkdir", "rmdir", "chmod", "fsync"):
            patch.setattr(os, name, wrap(getattr(os, name)))
        patch.setattr(drafts, "_exchange", wrap(drafts._exchange))
        yield


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_at_any_step_the_version_is_whole(tmp_path: Path, way: str, when: str) -> None:
    seen = set[str]()
    for step in count(1):
        version = make(tmp_path / f"lake-{step}")
        before = listing(version.path)
        try:
            with dying_at(step, when):
                whole_purge(version)
            break
        except DeadError:
            pass
        if version.exists():
            seen.add("as after" if was_switched(version, PURGE) else "as before")
            assert was_switched(version, PURGE) or listing(version.path) == before
            assert lines_in(version) == (NEW if was_switched(version, PURGE) else OLD)
        else:
            seen.add("vacant")
            with pytest.raises(InputError, match="all that is left of words/v1"):
                discard(draft_of(version, PURGE))
        whole_purge(version)
        assert lines_in(version) == NEW
        assert version.marker()["purged"] == [PURGE]
        assert listing(version.path).keys() == {*before, "_places/a.txt.places"}
        assert list(version.path.parent.iterdir()) == [version.path]
    assert seen == {"as before", "as after"} | ({"vacant"} if way == "by turns" else set())


def test_the_kernel_tells_what_it_cannot_do(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever file system these tests run on: what it refuses is done by turns, and other failures are told."""

    class Kernel:
        failure = errno.EINVAL

        def renameat2(self, *_: Any) -> int:
            ctypes.set_errno(self.failure)
            return -1

    kernel = Kernel()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: kernel)
    draft = write_draft(version)
    kernel.failure = errno.EACCES
    with pytest.raises(PermissionError):
        switch(version, draft)
    assert lines_in(version) == OLD
    kernel.failure = errno.EINVAL
    switch(version, draft)
    assert lines_in(version) == NEW
    assert lines_in(draft) == OLD
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    second = begin_draft(version, "p-2")
    switch(version, second)
    assert was_switched(version, "p-2")


def test_files_are_copied_where_they_cannot_be_shared(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    draft = write_draft(version)
    assert not (draft.path / "_note").samefile(version.path / "_note")
    switch(version, draft)
    assert lines_in(version) == NEW
    assert (version.path / "day=1" / "b.txt").read_bytes() == b"untouched\n"


def test_what_writers_left_and_others_know_of_the_old_file_goes(version: Version) -> None:
    for name in (".a.txt.crc", "_metadata", "._metadata.crc", "day=1/.b.txt.crc"):
        (version.path / name).write_bytes(b"of the old file")
    draft = write_draft(version)
    (draft.path / ".a.txt.0123.rewriting").write_bytes(b"two")
    switch(version, draft)
    left = {"a.txt", "_note", "_headwater.json", "_places/a.txt.places", "day=1/b.txt", "day=1/.b.txt.crc"}
    assert listing(version.path).keys() == left


def test_a_switch_needs_a_whole_draft(version: Version) -> None:
    draft = draft_of(version, PURGE)
    with pytest.raises(InputError, match="no whole draft of words/v1"):
        switch(version, draft)
    draft.path.mkdir()
    with pytest.raises(InputError, match="no whole draft of words/v1"):
        switch(version, draft)


def test_links_are_refused(version: Version, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"one\n")
    (version.path / "linked.txt").symlink_to(outside)
    draft = begin_draft(version, PURGE)
    assert (draft.path / "linked.txt").is_symlink()
    with pytest.raises(InputError, match="is a link"):
        rewrite(version, "linked.txt", LineEdit(removed=[0]), draft)
    linked = layout.version_of(tmp_path, "words", "v2")
    linked.path.symlink_to(version.path)
    with pytest.raises(InputError, match="is a link"):
        begin_draft(linked, PURGE)


# --- edits


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (LineEdit(removed=[5]), "No line begins at byte 5 of .*a.txt"),
        (LineEdit(removed=[4], changed={14: b""}), "No line begins at byte 14 of"),
        (LineEdit(removed=[99]), "No line begins at byte 99 of"),
        (LineEdit(removed=[-1]), "Position -1 of .* names no record"),
        (LineEdit(removed=[4], changed={4: b"x"}), "Position 4 of .* is both removed and changed"),
        (LineEdit(changed={4: b"x\ny"}), "holds a line break"),
        (LineEdit(appended=[b"x\n"]), "holds a line break"),
        (RowEdit(removed=[0]), "cannot be read as Parquet"),
    ],
)
def test_edits_that_do_not_fit_are_refused(version: Version, edit: LineEdit | RowEdit, said: str) -> None:
    draft = begin_draft(version, PURGE)
    before = listing(draft.path)
    with pytest.raises(InputError, match=said):
        rewrite(version, "a.txt", edit, draft)
    assert listing(draft.path) == before


def test_a_record_taken_out_cannot_be_touched_again(version: Version) -> None:
    switch(version, write_draft(version))
    with pytest.raises(InputError, match=r"Position 4 of .* names no record"):
        rewrite(version, "a.txt", LineEdit(removed=[4]), begin_draft(version, "p-2"))
    with (version.path / "a.txt").open("ab") as file:
        file.write(b"by hand\n")
    with pytest.raises(InputError, match="changed without them"):
        rewrite(version, "a.txt", LineEdit(removed=[8]), begin_draft(version, "p-2"))


def test_rows_that_do_not_fit_are_refused(version: Version) -> None:
    table = pa.table({"n": [1, 2], "s": ["a", "b"]})
    pq.write_table(table, version.path / "c.parquet")
    draft = begin_draft(version, PURGE)
    for edit, said in (
        (RowEdit(removed=[2]), "Row 2 is not in .*c.parquet, which has 2"),
        (RowEdit(changed={0: 1}, rows=table[:1]), "row 1 of 1, which is not there"),
        (RowEdit(changed={0: 0}), "row 0 of 0, which is not there"),
        (RowEdit(rows=table.select(["s", "n"])), "must have its columns, with their types: n int64, s string"),
        (RowEdit(rows=pa.table({"n": ["1"], "s": ["a"]})), "must have its columns"),
    ):
        with pytest.raises(InputError, match=said):
            rewrite(version, "c.parquet", edit, draft)
    with pytest.raises(InputError, match="is Parquet"):
        rewrite(version, "c.parquet", LineEdit(removed=[0]), draft)


def test_parquet_stays_as_spark_wrote_it(version: Version) -> None:
    times = [datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 6)]  # noqa: DTZ001 - Spark's INT96 has no zone
    table = pa.table({"t": pa.array(times, pa.timestamp("us")), "n": [1, 2, 3]})
    path = version.path / "c.parquet"
    notes = {"org.apache.spark.sql.parquet.row.metadata": "{}", "org.apache.spark.version": "4.0.0"}
    with pq.ParquetWriter(
        path, table.schema, store_schema=False, use_deprecated_int96_timestamps=True, compression={"t": "gzip"}
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(notes)
    before = pq.ParquetFile(path)
    draft = begin_draft(version, PURGE)
    rewrite(version, "c.parquet", RowEdit(removed=[1]), draft)
    switch(version, draft)
    after = pq.ParquetFile(path)
    assert after.schema.equals(before.schema)
    assert after.metadata.metadata == before.metadata.metadata
    columns = [after.metadata.row_group(0).column(number).compression for number in (0, 1)]
    assert columns == [before.metadata.row_group(0).column(number).compression for number in (0, 1)]
    assert [batch.to_pylist() for _, batch in all_rows(version, "c.parquet")] == [
        [{"t": times[0], "n": 1}, {"t": times[2], "n": 3}]
    ]

    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    with pytest.raises(InputError, match="INT96 timestamps that Spark did not write"):
        rewrite(version, "c.parquet", RowEdit(removed=[0]), begin_draft(version, "p-2"))
