"""Files as inputs and outputs whose records have ids: read from the files alone, by whoever reads them later.

An input record is known by its file and place: the row's index in a Parquet file, the byte offset of its line in any
other (after decompression); in a file that was rewritten since, by the place that it had at first. An output has one
file per task, `part-00000.parquet` and so on, and a record's place is the order in which its task wrote it; the same
rule, so that a later reader derives the same id.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql.types import StringType, StructType

from provenance_store.errors import InputError, JobError
from provenance_store.lake.layout import Version
from provenance_store.lake.places import read_places
from provenance_store.model.ids import LAKE_PREFIX, file_prefix
from provenance_store.storage.paths import RemotePath
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.tokens import FILE, PREFIX, Token

if TYPE_CHECKING:
    from spark_apps.capture.dataframe import TrackedFrame
    from spark_apps.capture.spark_run import SparkRun

_SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".json": "jsonl", ".csv": "csv"}
_COMPRESSED = {"none": "", "gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2"}
_PART = re.compile(r"part-(\d{5,})-.*")


class Reading(Protocol):
    """What reading needs; `SparkRun` has it."""

    @property
    def spark(self) -> SparkSession:
        """The session that reads."""

    @property
    def java(self) -> Any:
        """The driver's JVM."""

    @property
    def jvm(self) -> Any:
        """The Java side of capture."""

    @property
    def nonce(self) -> str:
        """A name that no other reader has."""

    def add_file(self, address: str, prefix: str) -> int:
        """A token's first long means this file, whose ids begin with the prefix."""


def open_input(run: "SparkRun", version: Version, options: dict[str, Any]) -> "TrackedFrame":
    """The version's records with their tokens."""
    from spark_apps.capture.dataframe import TrackedFrame  # noqa: PLC0415 - the two need each other

    files = version.files()
    if not files:
        raise InputError(f"{version.reference} holds no files.")
    kind = options.pop("format", None) or _told_format(version, files)
    key, personal = options.pop("key", None), options.pop("personal_key", False)
    frame, token = read_version(run, version, kind=kind, schema=options.pop("schema", None), options=options)
    if key:
        return run.keyed(frame.drop(*token.names), version.dataset, version.name, key, personal=personal)
    return TrackedFrame(run, frame, [token])


def read_version(
    run: Reading, version: Version, *, kind: str, schema: Any = None, options: Mapping[str, Any] | None = None
) -> tuple[DataFrame, Token]:
    """The records of a version that has files, each beside the token of its file and its place there."""
    files, given = version.files(), options or {}
    if kind == "parquet":
        return _read_parquet(run, version, files, schema, given)
    if kind in {"jsonl", "csv", "text"}:
        return _read_lines(run, version, files, kind=kind, schema=schema, options=given)
    raise UnsupportedOperationError(f"the format {kind!r}", "Use parquet, jsonl, csv or text")


def _told_format(version: Version, files: list[Path]) -> str:
    kinds = {_SUFFIXES.get(_plain_suffix(file), "text") for file in files}
    if len(kinds) > 1:
        raise InputError(f"{version.reference} holds files of several formats ({', '.join(sorted(kinds))}): name one.")
    return kinds.pop()


def _plain_suffix(file: Path) -> str:
    suffixes = file.suffixes
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED.values() else file.suffix


def _read_parquet(
    run: Reading, version: Version, files: list[Path], schema: Any, options: Mapping[str, Any]
) -> tuple[DataFrame, Token]:
    reader = run.spark.read.options(**options)
    frame = (reader.schema(schema) if schema else reader).parquet(*map(escape_glob, files))
    moved = places_of(run, version)
    row_places = run.jvm.RowPlaces()
    for url in frame.inputFiles():
        file = _name_of(version, url)
        # Spark writes a local file's address with three slashes here, and with one in `_metadata`.
        for address in {url, url.replace("file:///", "file:/", 1)}:
            number = run.add_file(address, _expanded(version, file))
            if str(version.path / file) in moved:
                row_places.put(number, moved[str(version.path / file)])
    token = Token.pair()
    path, index = F.call_function(FILE, F.col("_metadata.file_path")), F.col("_metadata.row_index")
    if moved:
        name = f"{PREFIX}place_{run.nonce}_{token.b}"
        row_places.register(run.spark._jsparkSession, name)
        index = F.call_function(name, path, index)
    return frame.withColumns({token.a: path, str(token.b): index}), token


def _read_lines(
    run: Reading, version: Version, files: list[Path], *, kind: str, schema: Any, options: Mapping[str, Any]
) -> tuple[DataFrame, Token]:
    if any(file.suffix == ".bz2" for file in files):
        raise UnsupportedOperationError("reading bzip2", "Its lines have no offsets across splits; use gzip or zstd")
    for option in ("multiLine", "header", "lineSep", "wholetext"):
        if str(options.get(option, "false")).lower() != "false":
            raise UnsupportedOperationError(f"reading with {option}", "A record must be a line of its own")
    tokens = run.java.java.util.HashMap()
    for file in files:
        prefix = _expanded(version, version.name_of(file))
        tokens.put(str(file), run.add_file(str(file), prefix))
    token = Token.pair()
    moved = places_of(run, version)
    lines = DataFrame(run.jvm.Lines.read(run.spark._jsparkSession, tokens, moved, token.a, token.b), run.spark)
    if kind == "text":
        return lines, token
    filled = lines.filter(F.length(F.trim("value")) > 0)
    text = {name: str(value) for name, value in options.items()}
    paths = list(map(escape_glob, files))
    if kind == "jsonl":
        schema = schema or run.spark.read.options(**text).json(paths).schema
        parsed = F.from_json("value", schema, text)
    else:
        schema = schema or run.spark.read.options(**text).csv(paths).schema
        ddl = schema if isinstance(schema, str) else _as_ddl(schema)
        parsed = F.from_csv(F.regexp_replace("value", "\r$", ""), ddl, text)
    made = filled.withColumn(f"{PREFIX}row", parsed)
    return made.select(f"{PREFIX}row.*", *token.names), token


def places_of(run: Reading, version: Version) -> Any:
    """The places of the version's rewritten files, by their paths, as Java takes them."""
    found = run.java.java.util.HashMap()
    for file, pairs in read_places(version).items():
        found.put(str(version.path / file), run.jvm.Places(pairs))
    return found


def _name_of(version: Version, url: str) -> str:
    """The name within a version of a file that Spark tells the address of."""
    folder = version.path.key if isinstance(version.path, RemotePath) else version.path
    return str(Path(unquote(urlparse(url).path)).relative_to(folder))


def _as_ddl(schema: StructType) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema.fields)


def _expanded(version: Version, file: str) -> str:
    return "urn:lake:" + file_prefix(version.dataset, version.name, file)[len(LAKE_PREFIX) :]


def escape_glob(file: Path) -> str:
    """A path as Spark takes it for that path alone."""
    # Spark takes these characters in a path for a pattern.
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(file))


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """How an output is written."""

    name: str
    suffix: str
    options: Mapping[str, str]
    compression: str = "none"

    @property
    def is_lines(self) -> bool:
        """Whether a record's place is the byte offset of its line."""
        return self.name != "parquet"

    def as_lines(self, frame: "TrackedFrame") -> DataFrame:
        """Each row as its line in `value`, beside its tokens; a line break within one would make two records of it."""
        names = frame.columns
        tokens = [name for token in frame._tokens for name in token.names]
        plain = frame._frame
        if self.name == "text":
            kinds = [field.dataType for field in frame.untracked.schema.fields]
            if kinds != [StringType()]:
                raise InputError("Text is written from one column of strings: select it first.")
            value = F.coalesce(plain[names[0]], F.lit(""))
        elif self.name == "jsonl":
            value = F.to_json(F.struct(*(plain[name] for name in names)), dict(self.options))
        else:
            value = F.to_csv(F.struct(*(plain[name] for name in names)), dict(self.options))
        broken = F.raise_error(F.lit("a line break within a record: its line would be taken for two records"))
        whole = F.when(value.contains("\n"), broken.cast("string")).otherwise(value)
        return plain.select(whole.alias("value"), *tokens)

    def write(self, frame: DataFrame, folder: Path) -> None:
        """One file a task."""
        writer = frame.write.option("maxRecordsPerFile", 0)
        if self.is_lines:
            writer.option("compression", self.compression).text(str(folder))
        else:
            writer.options(**self.options).parquet(str(folder))


def output_format(name: str, options: Mapping[str, Any]) -> OutputFormat:
    """The format of that name; InputError for one that is not captured."""
    text = {key: str(value) for key, value in options.items()}
    if name == "parquet":
        return OutputFormat(name, ".parquet", text)
    if name not in {"jsonl", "csv", "text"}:
        raise UnsupportedOperationError(f"the format {name!r}", "Use parquet, jsonl, csv or text")
    if text.get("header", "false").lower() != "false":
        raise UnsupportedOperationError("writing a header line", "It would be taken for a record")
    compression = text.pop("compression", "none").lower()
    if compression not in _COMPRESSED or compression == "bzip2":
        raise UnsupportedOperationError(f"writing lines with compression {compression!r}", "Use none, gzip or zstd")
    end = {"jsonl": ".jsonl", "csv": ".csv", "text": ".txt"}[name]
    return OutputFormat(name, end + _COMPRESSED[compression], text, compression)


def settle(folder: Path, suffix: str) -> None:
    """Give the files that Spark wrote the names that ids rely on, and take its own markers away."""
    seen: set[str] = set()
    for file in sorted(folder.iterdir()):
        part = _PART.fullmatch(file.name)
        if part is None:
            file.unlink()
            continue
        name = f"part-{part[1]}{suffix}"
        if name in seen:
            raise JobError(f"Spark wrote two files for one task ({name}); set spark.sql.files.maxRecordsPerFile to 0.")
        seen.add(name)
        file.rename(folder / name)
