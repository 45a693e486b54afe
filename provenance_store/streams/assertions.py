"""Assertions: what is kept of a running query so that its provenance can be computed when it is asked for.

Of an event that an operator made nothing is kept but its key, and not even that where it follows from other keys. Of
first inputs the content is kept too, in the lake, as records like any other: here stands where.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from provenance_store.errors import InputError
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.functions import Content
from provenance_store.streams.keys import Keys
from provenance_store.streams.operators import is_derivable
from provenance_store.streams.query import StreamQuery

# What to keep. `contents`: keys and contents of every event, the paper's unoptimised way. `keys`: keys of every event,
# contents of first inputs only, its optimised way. `needed`: of these, no keys that follow from others.
Keep: TypeAlias = Literal["contents", "keys", "needed"]

_KEY = [("timestamp", pa.int64()), ("sequence", pa.int64()), ("delay", pa.int64())]
KEY_SCHEMA = pa.schema(_KEY)
_PLACE = [("file", pa.dictionary(pa.int32(), pa.string())), ("position", pa.int64())]
LANE = "lane"
PLACED_SCHEMA = pa.schema([*_KEY, *_PLACE])
CONTENT_SCHEMA = pa.schema([*_KEY, ("content", pa.string())])
# Keys rise by little: their differences take a few bits each.
_ENCODING = dict.fromkeys(["timestamp", "sequence", "delay", "position", "parent", LANE], "DELTA_BINARY_PACKED")


def streams_to_keep(query: StreamQuery, keep: Keep) -> list[str]:
    """The streams whose keys are stored."""
    made = [one.name for one in query.operators if keep != "needed" or not is_derivable(one)]
    return [*(source.name for source in query.sources), *made]


def key_table(keys: Iterable[EventKey]) -> pa.Table:
    """Keys as a table; their stream is the table's."""
    rows = [(key.timestamp, key.sequence, key.delay) for key in keys]
    columns = zip(*rows, strict=True) if rows else [(), (), ()]
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=KEY_SCHEMA)


def placed_table(rows: Sequence[tuple[EventKey, tuple[str, int]]], lanes: Sequence[int] | None = None) -> pa.Table:
    """Keys with the file and the position of each event's record, and its lane where there are several."""
    table = key_table(key for key, _ in rows)
    files = pa.array([file for _, (file, _) in rows], pa.string()).dictionary_encode()
    table = table.append_column("file", files)
    table = table.append_column("position", pa.array([at for _, (_, at) in rows], pa.int64())).cast(PLACED_SCHEMA)
    return table if lanes is None else table.append_column(LANE, pa.array(lanes, pa.int64()))


def content_table(events: Sequence[Event]) -> pa.Table:
    """Keys with contents."""
    contents = [msgspec.json.encode(event.content).decode() for event in events]
    return key_table(event.key for event in events).append_column("content", pa.array(contents, pa.string()))


def write_table(path: Path, table: pa.Table) -> None:
    """Write assertions of a stream, packed, so that the file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding = {name: kind for name, kind in _ENCODING.items() if name in table.column_names}
    others = [name for name in table.column_names if name not in encoding]
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, unfinished, compression="zstd", use_dictionary=others, column_encoding=encoding)
    unfinished.replace(path)


def read_table(folder: Path) -> pl.DataFrame:
    """All assertions of a stream, lane by lane and in its order, from the files of its folder."""
    files = sorted(folder.glob("[!.]*.parquet"))
    if not files:
        raise InputError(f"{folder} holds no assertions: the stream's run was not kept, or is not there.")
    table = pl.concat([pl.read_parquet(file) for file in files])
    return table.sort([name for name in (LANE, "sequence") if name in table.columns])


def keys_of(stream: str, table: pl.DataFrame) -> Keys:
    """The columns that inference works on."""
    columns = (table[name].to_numpy().astype(np.int64, copy=False) for name in KEY_SCHEMA.names)
    return Keys(stream, *columns)


def write_assertions(folder: Path, query: StreamQuery, streams: Mapping[str, Sequence[Event]], keep: Keep) -> int:
    """Store an execution's assertions, a folder a stream, with contents where the way has them; the bytes on disk."""
    sources = {source.name for source in query.sources}
    for name in streams_to_keep(query, keep):
        events = streams.get(name, ())
        with_contents = keep == "contents" or name in sources
        table = content_table(events) if with_contents else key_table(event.key for event in events)
        write_table(folder / name / "part-00000.parquet", table)
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def read_assertions(folder: Path) -> tuple[dict[str, Keys], dict[str, list[Content]]]:
    """The keys by stream, and the contents of those that were stored with them."""
    keys, contents = {}, {}
    for one in sorted(path for path in folder.iterdir() if path.is_dir()):
        table = read_table(one)
        keys[one.name] = keys_of(one.name, table)
        if "content" in table.columns:
            decoded: list[Any] = [msgspec.json.decode(text) for text in table["content"]]
            contents[one.name] = decoded
    return keys, contents
