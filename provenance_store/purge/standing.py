"""Where records stand: from ids, in whichever form, to files and positions of the lake, in columns.

One record may be known by two ids, its place and its key, if one run read it by the one and another by the other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa

from provenance_store.errors import IdError, InputError
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue, Dataset
from provenance_store.lake.columns import keys_of
from provenance_store.lake.contents import read_lines, read_rows
from provenance_store.lake.layout import Version
from provenance_store.lake.locating import locate
from provenance_store.lake.places import TAKEN_OUT, Places
from provenance_store.model.ids import RecordId, file_prefix, hash_key, key_text, version_prefix
from provenance_store.model.keys import KeyRing, fingerprint

# Dataset, version, file and position, as they stand in an id.
_PARTS = r"^lake:(?<dataset>[^/#]+)/(?<version>[^/#]+)(?:/(?<file>[^#]+))?(?:#(?<last>.+))?$"
_POSITION = r"^(?:0|[1-9][0-9]*)$"
PLACE = ["dataset", "version", "file", "position"]
STANDING = {"id": pl.String, "dataset": pl.String, "version": pl.String, "file": pl.String, "position": pl.Int64}
NAMED = {"id": pl.String, "dataset": pl.String, "version": pl.String}


@dataclass(slots=True)
class Standing:
    """What became of ids: `rows` stand in the lake."""

    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STANDING))
    # The version is there, and they are not in it.
    missing: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=NAMED))
    # The version is not there.
    gone: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=NAMED))
    # They name whole versions, which are there.
    whole: list[Version] = field(default_factory=list)
    # They name no record of a version.
    foreign: list[str] = field(default_factory=list)


class Lake:
    """The lake as ids speak of it: its root, catalogue and keys."""

    def __init__(self, root: Path, catalogue: Catalogue, keys: KeyRing) -> None:
        self.root = root
        self.catalogue = catalogue
        self._keys = keys

    def stand(self, ids: pl.Series, *, exactly: bool = False) -> Standing:
        """Where the records stand. `exactly` looks at each; else a place that a file may have is taken for one."""
        named = ids.alias("id").to_frame()
        parts = named.with_columns(pl.col("id").str.extract_groups(_PARTS).alias("parts")).unnest("parts")
        found = Standing()
        is_foreign = pl.col("dataset").is_null() | (
            pl.col("file").is_not_null() & ~pl.col("last").str.contains(_POSITION).fill_null(value=False)
        )
        found.foreign = parts.filter(is_foreign)["id"].to_list()
        for group in parts.filter(~is_foreign).partition_by("dataset", "version", maintain_order=True):
            self._stand_in_version(group, found, exactly=exactly)
        return found

    def positional_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows under the ids that their places give them."""
        parts = []
        for group in rows.partition_by("dataset", "version", "file", maintain_order=True):
            prefix = file_prefix(*group.row(0)[1:4])
            parts.append(group.with_columns(id=pl.lit(prefix) + pl.col("position").cast(pl.String)))
        return pl.concat([rows.clear(), *parts])

    def key_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of one version under the ids that their keys give them: plain ones, and hashed ones."""
        dataset, name = rows.row(0)[1:3]
        version = layout.version_of(self.root, dataset, name)
        told = self._keyed(dataset, rows["id"][0])
        prefix = version_prefix(dataset, name)
        secrets = self._secrets_of(prefix)
        parts = []
        for group in rows.partition_by("file", maintain_order=True):
            there, records = _read(version, told, group)
            keys = keys_of(told, records)
            for write in (key_text, *(_hashing(secret) for secret in secrets)):
                ids = [None if key is None else f"{prefix}#{write(*key)}" for key in keys]
                parts.append(there.with_columns(pl.Series("id", ids, pl.String)))
        return pl.concat([rows.clear(), *parts]).drop_nulls("id")

    def _stand_in_version(self, group: pl.DataFrame, found: Standing, *, exactly: bool) -> None:
        quoted = f"lake:{group['dataset'][0]}/{group['version'][0]}"
        try:
            parsed = RecordId.parse(f"{quoted}#0")
        except IdError:
            found.foreign += group["id"].to_list()
            return
        named = group.select("id", dataset=pl.lit(parsed.dataset), version=pl.lit(parsed.version))
        version = _version(self.root, parsed)
        if version is None:
            found.gone = pl.concat([found.gone, named])
            return
        if group.filter(pl.col("last").is_null()).height:
            found.whole.append(version)
        records = group.filter(pl.col("last").is_not_null())
        by_key = pl.col("file").is_null() | pl.lit(exactly)
        parts = [
            self._look(version, records.filter(by_key)),
            *_derive(version, quoted, records.filter(~by_key)),
        ]
        rows = pl.concat([found.rows.clear(), *parts])
        found.rows = pl.concat([found.rows, rows])
        there = pl.concat([rows["id"], pl.Series("id", [quoted], pl.String)])
        found.missing = pl.concat([found.missing, named.join(there.to_frame(), on="id", how="anti")])

    def _look(self, version: Version, records: pl.DataFrame) -> pl.DataFrame:
        if not records.height:
            return pl.DataFrame(schema=STANDING)
        keyed = records.filter(pl.col("file").is_null())["id"]
        told = self._keyed(version.dataset, keyed[0]) if len(keyed) else self.catalogue.of(version.dataset)
        found, _ = locate(version, told, records["id"], self._keys)
        columns = [
            (name, version.dataset, version.name, file, position)
            for file, positions in found.items()
            for name, position in positions.items()
        ]
        return pl.DataFrame(columns, schema=STANDING, orient="row")

    def _keyed(self, dataset: str, example: str) -> Dataset:
        told = self.catalogue.of(dataset)
        if not told.key:
            raise InputError(
                f"The lake graph knows {example} by its key, and {self.catalogue.path} tells no key of {dataset!r}: "
                "tell one there, or its records cannot be found."
            )
        return told

    def _secrets_of(self, version: str) -> list[bytes]:
        ring = self._keys.read()
        known = ring.versions.get(version)
        return [secret for secret in ring.secrets if known in {None, fingerprint(secret)}]


def _version(root: Path, parsed: RecordId) -> Version | None:
    try:
        version = layout.version_of(root, parsed.dataset, parsed.version)
    except InputError:
        return None
    return version if version.exists() else None


def _derive(version: Version, quoted: str, records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of positional ids, by their files and those files' places alone."""
    for group in records.partition_by("file", maintain_order=True):
        try:
            file = RecordId.parse(f"{quoted}/{group['file'][0]}#0").file or ""
        except IdError:
            continue
        path = version.path / file
        if not path.is_file():
            continue
        rows = group.select(
            "id",
            dataset=pl.lit(version.dataset),
            version=pl.lit(version.name),
            file=pl.lit(file),
            position=pl.col("last").cast(pl.Int64, strict=False),
        ).drop_nulls("position")
        places = Places.load(version, path)
        if places is not None:
            rows = rows.filter(pl.Series(places.physicals(rows["position"].to_numpy()) != TAKEN_OUT))
        yield rows


def _read(version: Version, told: Dataset, rows: pl.DataFrame) -> tuple[pl.DataFrame, Sequence[bytes] | pa.Table]:
    """Those of the rows of one file that are there, and their records in the same order."""
    rows = rows.sort("position")
    file, positions = rows["file"][0], rows["position"].to_numpy()
    if told.format == "parquet":
        table, there = read_rows(version, file, positions, told.key)
        return rows.filter(pl.col("position").is_in(there)), table
    lines = read_lines(version, file, positions)
    found = [line for line in lines if line is not None]
    return rows.filter(pl.Series([line is not None for line in lines])), found


def _hashing(secret: bytes) -> Callable[..., str]:
    return lambda *key: hash_key(*key, secret=secret)
