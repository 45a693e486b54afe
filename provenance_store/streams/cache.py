"""A bounded cache of what came along a topic, for sources whose events are not landed: the oldest goes first.

Events are worth most while they are new. Of such a source the lake holds nothing but references, the partition and
offset of each event; contents are here for as long as they fit, and then in the topic for as long as its retention.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from provenance_store.streams.assertions import write_table

_SCHEMA = pa.schema([("file", pa.string()), ("position", pa.int64()), ("content", pa.binary())])


class Cache:
    """The cached events of one source of one run, a file for each step of each bucket."""

    def __init__(self, home: Path, run: str, source: str) -> None:
        self._folder = home.absolute() / "stream_cache" / run / source

    def write(self, part: str, places: Sequence[tuple[str, int]], contents: Sequence[bytes]) -> None:
        """Keep the events of a step; the same step again writes the same file."""
        files, positions = zip(*places, strict=True)
        columns = zip((files, positions, contents), _SCHEMA.types, strict=True)
        table = pa.table([pa.array(values, kind) for values, kind in columns], _SCHEMA)
        write_table(self._folder / f"part-{part}.parquet", table)

    def read(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        """Those of the events that are still here."""
        asked = pl.DataFrame(list(places), schema={"file": pl.String, "position": pl.Int64}, orient="row")
        found: dict[tuple[str, int], bytes] = {}
        for file in self._files():
            for name, position, content in pl.read_parquet(file).join(asked, on=["file", "position"]).rows():
                found[name, position] = content
        return found

    def trim(self, most: int) -> None:
        """Forget the oldest until what is left takes no more than so many bytes."""
        files = self._files()
        left = sum(file.stat().st_size for file in files)
        for file in files:
            if left <= most:
                return
            left -= file.stat().st_size
            file.unlink()

    def _files(self) -> list[Path]:
        """The files, the oldest first."""
        found = [(file.stat().st_mtime_ns, file) for file in self._folder.glob("part-*.parquet")]
        return [file for _, file in sorted(found)]
