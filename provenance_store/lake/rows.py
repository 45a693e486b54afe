"""Parquet files, read row group by row group, and written so that whoever reads them finds what was there before."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.storage.paths import RemotePath

_ARROW_SCHEMA = b"ARROW:schema"
_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_INT96 = "INT96"


@contextmanager
def open_rows(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file; InputError where it is none, or none that can be written again as it was."""
    with ExitStack() as opened:
        source = opened.enter_context(path.open("rb")) if isinstance(path, RemotePath) else path
        try:
            # Spark's INT96 counts microseconds, and as nanoseconds the year 9999 would not fit.
            file = opened.enter_context(pq.ParquetFile(source, coerce_int96_timestamp_unit="us"))
        except pa.ArrowInvalid as error:
            raise InputError(f"{path} cannot be read as Parquet: {error}.") from None
        if has_int96(file) and _OF_SPARK not in (file.metadata.metadata or {}):
            raise InputError(
                f"{path} holds INT96 timestamps that Spark did not write, and finer ones than can be kept may be among "
                "them: write the dataset anew with timestamps of another type."
            )
        yield file


def has_int96(file: pq.ParquetFile) -> bool:
    """Whether timestamps are stored as Spark stores them unless it is told otherwise."""
    return any(file.schema.column(number).physical_type == _INT96 for number in range(len(file.schema)))


@contextmanager
def new_rows(path: Path, like: pq.ParquetFile) -> Iterator[pq.ParquetWriter]:
    """A new Parquet file with the schema, compression and notes of another."""
    notes = like.metadata.metadata or {}
    with pq.ParquetWriter(
        path,
        like.schema_arrow,
        compression=_compression_of(like),
        store_schema=_ARROW_SCHEMA in notes,
        use_deprecated_int96_timestamps=has_int96(like),
    ) as writer:
        yield writer
        if _ARROW_SCHEMA not in notes:
            writer.add_key_value_metadata(notes)


def write_group(writer: pq.ParquetWriter, rows: pa.Table) -> None:
    """One row group; none where there are no rows."""
    if rows.num_rows:
        writer.write_table(rows, row_group_size=rows.num_rows)


def group_starts(file: pq.ParquetFile) -> list[int]:
    """The first row of each row group, and the end."""
    starts = [0]
    for number in range(file.num_row_groups):
        starts.append(starts[-1] + file.metadata.row_group(number).num_rows)
    return starts


def check_columns(path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> None:
    """InputError where a column is not there, which pyarrow would leave out in silence."""
    for column in columns or ():
        if column not in schema.names:
            raise InputError(f"{path} has no column {column!r}; it has {', '.join(schema.names)}.")


def _compression_of(file: pq.ParquetFile) -> dict[str, str] | str:
    if not file.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    return {
        column.path_in_schema: "none" if column.compression == "UNCOMPRESSED" else column.compression.lower()
        for column in columns
    }
