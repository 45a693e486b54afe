"""What a step comes to, file by file."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from provenance_store.lake.catalogue import Dataset, Recompute
from provenance_store.lake.layout import Version
from provenance_store.lake.rewriting import RowEdit
from provenance_store.purge import edits
from provenance_store.purge.plan import Step

TOLD = Dataset(format="parquet", key=("country",), policy=Recompute())


def version(folder: Path, countries: list[str]) -> Version:
    folder.mkdir()
    pq.write_table(pa.table({"country": pa.array(countries, pa.string())}), folder / "part-00000.parquet")
    return Version("totals", folder.name, folder)


@pytest.mark.parametrize(("made", "vanished"), [(["AT"], [1]), ([], [0, 1])])
def test_rows_that_only_vanish(tmp_path: Path, made: list[str], vanished: list[int]) -> None:
    old, remade = version(tmp_path / "v1", ["AT", "BR"]), version(tmp_path / "r1", made)
    step = Step(
        dataset="totals",
        version="v1",
        policy="recompute",
        run="r0",
        dic="report",
        inputs=[],
        selected=0,
        reached=2,
        records=2,
    )
    reached = pl.DataFrame({"file": ["part-00000.parquet"] * 2, "position": [0, 1], "selected": [False, False]})
    found = edits.recompute(step, TOLD, reached, old, remade)
    edit = found.by_file["part-00000.parquet"]
    assert isinstance(edit, RowEdit)
    assert edit.removed.tolist() == vanished
    assert (found.done.vanished, found.done.recomputed) == (len(vanished), 0)
