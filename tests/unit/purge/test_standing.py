"""From ids to where records stand, and back."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue
from provenance_store.lake.places import Places
from provenance_store.lake.records import lines_of
from provenance_store.model.ids import file_prefix
from provenance_store.model.keys import KeyRing
from provenance_store.purge.standing import Lake
from provenance_store.settings import Settings
from tests.handmade import put, tell

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: not name.startswith((".", "_")) and len(name.encode()) < 100
)
lines = st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"n")), min_size=1, max_size=6)


@given(st.dictionaries(names, lines, min_size=1, max_size=3), st.booleans())
def test_all_records_stand_where_their_ids_say(files: dict[str, list[bytes]], exactly: bool) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "lake"
        settings = Settings(home=Path(folder) / "home", lake=root)
        tell(root, '[some]\nformat = "text"\npolicy = { do = "delete" }\n')
        version = layout.version_of(root, "some", "v1")
        with layout.new_version(version, {}) as made:
            for name, content in files.items():
                (made / name).write_bytes(b"".join(line + b"\n" for line in content))
        lake = Lake(root, Catalogue.load(root), KeyRing(settings))
        ids = [record for record, _ in lines_of(version)]
        beside = [f"{file_prefix('some', 'v1', 'no such file')}0", "lake:some/v9/f#0", "lake:some/v1", "lake:odd", "x"]
        found = lake.stand(pl.Series("id", [*ids, *beside], pl.String), exactly=exactly)
        assert sorted(found.rows["id"]) == sorted(ids)
        assert set(found.rows["file"]) == set(files)
        assert lake.positional_ids(found.rows)["id"].to_list() == found.rows["id"].to_list()
        assert found.missing["id"].to_list() == beside[:1]
        assert found.gone.rows() == [("lake:some/v9/f#0", "some", "v9")]
        assert found.whole == [version]
        assert sorted(found.foreign) == ["lake:odd", "x"]


def test_what_was_taken_out_of_a_rewritten_file_stands_nowhere(tmp_path: Path) -> None:
    tell(tmp_path, '[some]\nformat = "text"\npolicy = { do = "delete" }\n')
    version = put(tmp_path, "some/v1", ["bb", "cc"])
    Places.unmoved(9).rewritten([0, 3, 6], [-1, 0, 3], end=6).write(version, version.files()[0])
    lake = Lake(tmp_path, Catalogue.load(tmp_path), KeyRing(Settings(home=tmp_path / "home", lake=tmp_path)))
    ids = [f"lake:some/v1/part-0.txt#{position}" for position in (0, 3, 6)]
    for exactly in (False, True):
        found = lake.stand(pl.Series("id", ids), exactly=exactly)
        assert sorted(found.rows["position"]) == [3, 6]
        assert found.missing["id"].to_list() == ids[:1]
