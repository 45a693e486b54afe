"""What every storage promises a lake, run against each: a folder, a real HDFS, and a server that speaks S3."""

import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from provenance_store.errors import InputError, StorageError
from provenance_store.lake import catalogue, layout, tweets
from provenance_store.lake.checking import find_faults
from provenance_store.lake.contents import all_lines, all_rows, read_lines, read_rows
from provenance_store.lake.drafts import begin_draft, discard, draft_of, switch, was_switched
from provenance_store.lake.layout import Version
from provenance_store.lake.records import lines_of, read_line
from provenance_store.lake.rewriting import LineEdit, RowEdit, rewrite
from provenance_store.lake.steady import SWITCHING
from provenance_store.lake.subsets import bring, write_subset
from provenance_store.model.files import create_whole, write_whole
from provenance_store.storage.paths import RemotePath, parse, staged
from tests.dying import DeadError, dying_after

PURGE = "p-0123456789abcdef"
OLD, NEW = [b"one", b"two", b"three"], [b"one", b"three", b"four"]
# As Spark and people name files.
NAMES = ["part-00000.txt", "day=2026-01-01 10%3A00/part+1.txt", "größe/a#b?.txt"]


def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return tmp_path
    root: Path = request.getfixturevalue(f"{request.param}_root")
    return root / uuid.uuid4().hex


@pytest.fixture(params=["folder", "hdfs", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return place(request, tmp_path)


@pytest.fixture(params=["hdfs", "s3"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> RemotePath:
    path = place(request, tmp_path)
    assert isinstance(path, RemotePath)
    return path


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def make(root: Path) -> Version:
    version = layout.version_of(root, "words", "v1")
    put(version.path / "a.txt", b"one\ntwo\nthree\n")
    put(version.path / "day=1" / "b.txt", b"untouched\n")
    put(version.path / "_note", b"kept\n")
    put(version.path / layout.MARKER, b'{"run": "r1", "made": "2026-01-02T03:04:05+00:00"}')
    return version


def write_draft(version: Version) -> Version:
    draft = begin_draft(version, PURGE)
    rewrite(version, "a.txt", LineEdit(removed=[4], appended=[b"four"]), draft)
    return draft


def lines_in(version: Version) -> list[bytes]:
    return [line for _, lines in all_lines(version, "a.txt") for line in lines]


def listing(folder: Path) -> dict[str, bytes]:
    names = [file for file, _ in folder.walk_files()] if isinstance(folder, RemotePath) else local_names(folder)
    return {name: (folder / name).read_bytes() for name in names}


def local_names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


# --- files


def test_files_are_written_whole_and_found_again(root: Path) -> None:
    for name in NAMES:
        put(root / name, name.encode())
        assert (root / name).read_bytes() == name.encode()
        assert (root / name).is_file()
        assert not (root / name).is_dir()
        assert (root / name).stat().st_size == len(name.encode())
        assert (root / name).stat().st_mtime > 1.7e9
        assert (root / name).parent.is_dir()
        assert not (root / name).is_symlink()
    assert listing(root) == {name: name.encode() for name in NAMES}
    assert sorted(path.name for path in root.iterdir()) == sorted({name.split("/")[0] for name in NAMES})
    put(root / NAMES[0], b"other")
    assert (root / NAMES[0]).read_text(encoding="utf-8") == "other"
    (root / NAMES[0]).unlink()
    assert not (root / NAMES[0]).exists()
    (root / NAMES[0]).unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        (root / NAMES[0]).unlink()
    for read in ("read_bytes", "stat", "read_text"):
        with pytest.raises(FileNotFoundError, match=NAMES[0]):
            getattr(root / NAMES[0], read)()


def test_files_are_read_from_any_place(root: Path) -> None:
    content = b"".join(b"%07d\n" % number for number in range(1_500_000))
    target = root / "large.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    with staged(target) as file:
        file.write_bytes(content)
    with target.open("rb") as read:
        assert read.read(8) == content[:8]
        read.seek(11_000_004)
        assert read.readline() == content[11_000_004:11_000_008]
        assert read.readline() == content[11_000_008:11_000_016]
        assert read.read() == content[11_000_016:]
        assert read.read() == b""
        read.seek(0)
        assert next(read) == content[:8]
    put(root / "empty.txt", b"")
    assert (root / "empty.txt").read_bytes() == b""


def test_what_fails_on_its_way_leaves_nothing(root: Path) -> None:
    put(root / "a.txt", b"one\n")

    def write_half() -> None:
        with staged(root / "b.txt") as file:
            file.with_name(".b.txt").write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert listing(root).keys() - {".b.txt"} == {"a.txt"}


def test_a_file_is_made_once(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    create_whole(root / "approval.json", b"first")
    with pytest.raises(FileExistsError):
        create_whole(root / "approval.json", b"second")
    assert listing(root) == {"approval.json": b"first"}


def test_of_many_at_once_one_makes_it(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)

    def try_to(number: int) -> bool:
        try:
            create_whole(root / "approval.json", b"%d" % number)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(try_to, range(8)))
    assert made.count(True) == 1
    assert listing(root) == {"approval.json": b"%d" % made.index(True)}


# --- paths


def test_paths_stay_what_they_are(root: Path) -> None:
    path = root / "tweets" / "v1" / "part.jsonl.gz"
    sent = pickle.loads(pickle.dumps(path))  # noqa: S301 - as Spark sends it to its workers
    assert sent == path
    assert hash(sent) == hash(path)
    assert path.absolute() == path
    assert str(path) == f"{root}/tweets/v1/part.jsonl.gz"
    assert str(path.relative_to(root)) == "tweets/v1/part.jsonl.gz"
    assert (path.name, path.suffix, path.parent.name) == ("part.jsonl.gz", ".gz", "v1")
    assert path.with_name(".part") == root / "tweets" / "v1" / ".part"
    assert path.is_relative_to(root)


def test_nothing_here_is_taken_for_what_is_there(remote: RemotePath, tmp_path: Path) -> None:
    put(remote / "a.txt", b"one\n")
    assert parse(str(remote / "a.txt")) == remote / "a.txt"
    for use in (open, Path.rmdir, Path.touch, pq.read_table, lambda path: path.rename(tmp_path / "b")):
        with pytest.raises(StorageError, match="is not on this machine"):
            use(remote / "a.txt")
    with pytest.raises(StorageError, match="only be read, or written whole"):
        (remote / "a.txt").open("ab")
    with pytest.raises(StorageError, match="in another storage"):
        (remote / "a.txt").replace(tmp_path / "a.txt")
    assert (remote / "a.txt").read_bytes() == b"one\n"
    with pytest.raises(InputError, match="DICs run on a local lake"), layout.new_version(make(remote), {}):
        pass


# --- versions


def test_a_lake_is_listed_as_it_lies(root: Path) -> None:
    assert layout.list_datasets(root) == []
    catalogue.extend(root, Path(tweets.__file__).with_name("tweets.toml"))
    catalogue.extend(root, Path(tweets.__file__).with_name("tweets.toml"))
    assert list(catalogue.Catalogue.load(root).datasets) == [
        "tweets",
        "categories",
        "hashtag_counts",
        "category_totals",
    ]
    version = make(root)
    assert layout.list_datasets(root) == ["words"]
    assert layout.list_versions(root, "words") == [version] == [layout.resolve(root, "words")]
    assert [version.name_of(file) for file in version.files()] == ["a.txt", "day=1/b.txt"]
    assert version.marker()["run"] == "r1"
    assert [line for _, line in lines_of(version)] == [*OLD, b"untouched"]
    assert read_line(root, "lake:words/v1/a.txt#4") == b"two"
    assert list(find_faults(root)) == [
        f"words is in the lake and not in {root / 'catalogue.toml'}: no purge can tell what to do with it."
    ]


def test_ids_outlive_a_switch(root: Path) -> None:
    version = make(root)
    before = listing(version.path)
    draft = write_draft(version)
    assert listing(version.path) == before
    assert lines_in(draft) == NEW
    assert [draft.name_of(file) for file in draft.files()] == ["a.txt", "day=1/b.txt"]
    assert [line for _, line in lines_of(draft)] == [*NEW, b"untouched"]
    assert layout.list_versions(root, "words") == [version]
    switch(version, draft)
    assert was_switched(version, PURGE)
    assert version.sort_key() == (1767323045.0, "v1")
    assert dict(lines_of(version)) == {
        "lake:words/v1/a.txt#0": b"one",
        "lake:words/v1/a.txt#8": b"three",
        "lake:words/v1/a.txt#14": b"four",
        "lake:words/v1/day=1/b.txt#0": b"untouched",
    }
    assert read_lines(version, "a.txt", [8, 4, 0]) == [b"three", None, b"one"]
    now = listing(version.path)
    switch(version, draft)
    discard(draft)
    switch(version, draft)
    assert listing(version.path) == now
    assert now.keys() == {*before, "_places/a.txt.places"}
    assert {name.partition("/")[0] for name in listing(version.path.parent)} == {"v1"}

    # Places of places: the second purge goes by those of the first.
    again = begin_draft(version, "p-2")
    rewrite(version, "a.txt", LineEdit(changed={8: b"drei"}), again)
    switch(version, again)
    discard(again)
    assert read_lines(version, "a.txt", [0, 8, 14]) == [b"one", b"drei", b"four"]
    assert version.marker()["purged"] == [PURGE, "p-2"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.zst"])
def test_compressed_lines(root: Path, name: str) -> None:
    version = layout.version_of(root, "words", "v1")
    target = version.path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with staged(target) as file, pa.output_stream(str(file)) as out:
        out.write(b"one\ntwo\nthree\n")
    draft = begin_draft(version, PURGE)
    rewrite(version, name, LineEdit(removed=[0]), draft)
    switch(version, draft)
    assert [line for _, line in lines_of(version)] == [b"two", b"three"]
    assert read_lines(version, name, [0, 4, 8]) == [None, b"two", b"three"]


def test_parquet(root: Path) -> None:
    version = layout.version_of(root, "rows", "v1")
    target = version.path / "a.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    with staged(target) as file:
        pq.write_table(pa.table({"n": range(1000), "s": [str(n) for n in range(1000)]}), file, row_group_size=100)
    draft = begin_draft(version, PURGE)
    rewrite(version, "a.parquet", RowEdit(removed=[0, 555]), draft)
    switch(version, draft)
    rows, there = read_rows(version, "a.parquet", [0, 1, 555, 556, 999], ["n"])
    assert rows["n"].to_pylist() == there.tolist() == [1, 556, 999]
    kept = {
        at: n
        for places, batch in all_rows(version, "a.parquet", ["n"])
        for at, n in zip(places.tolist(), batch["n"].to_pylist(), strict=True)
    }
    assert kept == {n: n for n in range(1000) if n not in {0, 555}}


def test_parts_of_a_version_are_brought_here(root: Path, tmp_path: Path) -> None:
    version = make(root)
    draft = write_draft(version)
    told = catalogue.Dataset(format="text", policy=catalogue.Delete())
    for number, one in enumerate([version, draft]):
        here = layout.version_of(tmp_path / f"brought-{number}", "words", "v1")
        bring(one, here.path)
        assert dict(lines_of(here)) == dict(lines_of(one))
        part = write_subset(one, told, {"a.txt": [8]}, tmp_path / f"part-{number}")
        assert dict(lines_of(part)) == {"lake:words/v1/a.txt#8": b"three"}


# --- crashes


def records_in(version: Version) -> dict[int, bytes]:
    blocks = all_lines(version, "a.txt")
    return {at: line for places, lines in blocks for at, line in zip(places.tolist(), lines, strict=True)}


def look(version: Version) -> str:
    try:
        found = records_in(version)
    except InputError as error:
        return str(error)
    whole = {"as before": {0: b"one", 4: b"two", 8: b"three"}, "as after": {0: b"one", 8: b"three", 14: b"four"}}
    return next(state for state, records in whole.items() if records == found)


def test_after_a_crash_at_any_step_no_id_is_wrong_and_the_switch_goes_on(remote: RemotePath) -> None:
    seen = []
    for step in count():
        version = layout.version_of(remote / f"lake-{step}", "words", "v1")
        put(version.path / "a.txt", b"one\ntwo\nthree\n")
        draft = write_draft(version)
        try:
            with dying_after(step):
                switch(version, draft)
                discard(draft)
            break
        except DeadError:
            seen.append(look(version))
        assert was_switched(version, PURGE) or seen[-1] != "as after"
        switch(version, draft)
        discard(draft)
        assert look(version) == "as after"
        assert version.marker()["purged"] == [PURGE]
        # On HDFS a file that nobody reads may be left, of which only the beginning was written.
        left = {name for name in listing(version.path) if not name.endswith(".writing")}
        assert left == {"a.txt", "_places/a.txt.places", layout.MARKER}
        assert {name.partition("/")[0] for name in listing(version.path.parent)} == {"v1"}
    before, kept_out, after = dict.fromkeys(seen)
    assert (before, after) == ("as before", "as after")
    assert f"is being changed by purge {PURGE}" in kept_out


def test_who_reads_while_a_version_is_switched_is_told(remote: RemotePath) -> None:
    version = make(remote)
    draft = write_draft(version)
    reading = all_lines(version, "a.txt")
    next(reading)
    switch(version, draft)
    with pytest.raises(InputError, match="words/v1 went through a purge while it was read"):
        next(reading)
    write_whole(version.path / SWITCHING, b"p-2")
    for read in (
        lambda: read_lines(version, "a.txt", [0]),
        lambda: list(lines_of(version)),
        lambda: read_line(remote, "lake:words/v1/a.txt#8"),
        lambda: rewrite(version, "a.txt", LineEdit(removed=[0]), begin_draft(version, "p-3")),
    ):
        with pytest.raises(InputError, match="`headwater purge apply p-2` finishes it"):
            read()


def test_a_switch_needs_a_whole_draft(remote: RemotePath) -> None:
    version = make(remote)
    with pytest.raises(InputError, match="no whole draft of words/v1"):
        switch(version, draft_of(version, PURGE))
    draft = write_draft(version)
    (draft.path / layout.MARKER).unlink()
    with pytest.raises(InputError, match="no whole draft of words/v1"):
        switch(version, draft)
    assert lines_in(version) == OLD


def test_what_others_know_of_the_old_file_goes(remote: RemotePath) -> None:
    version = make(remote)
    for name in (".a.txt.crc", "_metadata", "day=1/.b.txt.crc"):
        put(version.path / name, b"of the old file")
    draft = write_draft(version)
    put(draft.path / ".a.txt.0123.writing", b"two")
    switch(version, draft)
    left = {"a.txt", "_note", "_headwater.json", "_places/a.txt.places", "day=1/b.txt", "day=1/.b.txt.crc"}
    assert listing(version.path).keys() == left
