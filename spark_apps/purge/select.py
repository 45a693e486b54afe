"""`python -m spark_apps.purge.select --dataset NAME --by WHO`: selects by a predicate on its standard input.

The predicate is a Spark SQL expression over the columns of the dataset, and may hold personal values, so it must not be
found anywhere afterwards: not in arguments, logs, event logs, Spark's pages or errors. It runs as an RDD, of which no
plan is kept; errors are told by Spark's name for them alone, because Spark's own words quote the expression, or data.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"selection": ID}`, or
`{"error": …, "kind": …}`.
"""

import argparse
import logging
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql.types import StructType

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.catalogue import Catalogue, Dataset
from provenance_store.lake.steady import steady
from provenance_store.lake.subsets import bring
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX
from provenance_store.purge import folders
from provenance_store.purge.selection import Selection, store
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import Settings, load_settings
from provenance_store.storage.paths import RemotePath
from spark_apps.capture.files import escape_glob, read_version
from spark_apps.capture.jar import capture_jars
from spark_apps.capture.tokens import Token
from spark_apps.session import open_session

# Whatever keeps plans, or is told of them, and what a failing task would log.
_SILENT = {
    "spark.eventLog.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.extraListeners": "",
    "spark.sql.queryExecutionListeners": "",
    "spark.plugins": "",
    "spark.log.level": "OFF",
}
# These call any Java method, and a predicate is only about records.
_UNSAFE = ("reflect", "java_method", "try_reflect")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_CONDITION = re.compile(r"(?:Exception|Error): \[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")
# Texts and quoted names, as Spark reads them: with backslashes, but behind an r.
_QUOTED = re.compile(
    r"""\br'[^']*'|\br"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`""", re.DOTALL | re.IGNORECASE
)
_REASONS = {
    "PARSE_SYNTAX_ERROR": "it is no Spark SQL expression",
    "PARSE_EMPTY_STATEMENT": "it is no Spark SQL expression",
    "UNRESOLVED_COLUMN": "it speaks of a column that is not there; texts stand in single quotes",
    "UNRESOLVED_ROUTINE": "it calls a function that is not there",
    "DATATYPE_MISMATCH": "it compares what cannot be compared, or is neither true nor false",
    "CAST_INVALID_INPUT": "it compares with a value of another type",
}


class _Reader:
    """Reads versions on a session of its own, and remembers which token means which file."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()
        self.nonce = secrets.token_hex(4)
        self.prefixes: dict[int, str] = {}
        session = self.spark._jsparkSession  # noqa: SLF001 - it has no public name
        self.jvm.TapFunctions.registerTokens(session)
        for name in _UNSAFE:
            self.jvm.TapFunctions.unregister(session, name)

    @property
    def java(self) -> Any:
        return self.spark._jvm  # noqa: SLF001 - it has no public name

    @property
    def jvm(self) -> Any:
        return self.java.io.headwater.capture

    def add_file(self, address: str, prefix: str) -> int:
        text = self.java.org.apache.spark.unsafe.types.UTF8String.fromString(address)
        token = int(self.jvm.FileToken.of(text))
        self.prefixes[token] = LAKE_PREFIX + prefix.removeprefix(LAKE_NAMESPACE)
        return token


def select_where(spark: SparkSession, settings: Settings, dataset: str, predicate: str, *, by: str) -> Selection:
    """Select the records of a dataset for which a predicate is true, in all its versions."""
    told = Catalogue.load(settings.lake).of(dataset)
    layout.newest_version(settings.lake, dataset)
    versions = [version for version in layout.list_versions(settings.lake, dataset) if version.files()]
    _refuse_doubled_quotes(predicate)
    reader = _Reader(spark)
    with _within_reach(settings, versions) as reached:
        frames = _read(reader, told, reached)
        names = (name for frame, token in frames for name in frame.columns if name not in token.names)
        columns = list(dict.fromkeys(names))
        with _silence():
            found = _guarded(lambda: [_find(reader, *one, columns, predicate) for one in frames], dataset, columns)
    ids = [
        pl.select(
            pl.lit(reader.prefixes[token]) + pl.Series(places[places[:, 0] == token, 1]).cast(pl.String)
        ).to_series()
        for places in found
        for token in np.unique(places[:, 0]).tolist()
    ]
    if not ids:
        raise InputError(f"No record of {dataset!r} is such. Nothing was selected.")
    return store(settings.lake, pl.concat(ids), how="where", by=by)


@contextmanager
def _within_reach(settings: Settings, versions: Sequence[layout.Version]) -> Iterator[list[layout.Version]]:
    """The versions where Spark can read them: of S3, which it has no client of, copies for their owner alone."""
    if not isinstance(settings.lake, RemotePath) or settings.lake.is_hdfs:
        with ExitStack() as unchanged:
            for version in versions:
                unchanged.enter_context(steady(version))
            yield list(versions)
        return
    with tempfile.TemporaryDirectory(prefix="selecting-", dir=folders.work_folder(settings)) as folder:
        copies = [layout.version_of(Path(folder), version.dataset, version.name) for version in versions]
        for version, copy in zip(versions, copies, strict=True):
            bring(version, copy.path)
        yield copies


def _read(reader: _Reader, told: Dataset, versions: Sequence[layout.Version]) -> list[tuple[DataFrame, Token]]:
    """The columns that the catalogue tells of, or else the files, beside tokens."""
    schema: StructType | str | None = None
    options: dict[str, str] = {}
    if told.format == "jsonl":
        # Of all versions, because JSON leaves out what is null.
        schema = reader.spark.read.json([escape_glob(file) for version in versions for file in version.files()]).schema
    elif told.format == "csv":
        schema = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in told.columns)
        options = {"sep": told.divides_at or ","}
    frames = [read_version(reader, one, kind=told.format, schema=schema, options=options) for one in versions]
    return [(_divide(frame, token, told), token) for frame, token in frames]


def _divide(frame: DataFrame, token: Token, told: Dataset) -> DataFrame:
    if told.format != "text" or told.divides_at is None:
        return frame
    parts = F.split("value", re.escape(told.divides_at), len(told.columns))
    columns = [F.get(parts, F.lit(place)).alias(name) for place, name in enumerate(told.columns)]
    return frame.select(*columns, *token.names)


def _find(reader: _Reader, frame: DataFrame, token: Token, columns: Sequence[str], predicate: str) -> NDArray[np.int64]:
    """Files and positions of the records for which the predicate is true."""
    whole = frame.withColumns({name: F.lit(None) for name in columns if name not in frame.columns})
    filtered = whole.filter(F.expr(predicate))
    if reader.jvm.Plans.notNarrow(filtered._jdf, whole._jdf, 0):  # noqa: SLF001 - they have no public name
        raise InputError("A predicate is about one record: leave subqueries, windows and generators out.")
    # Not as a DataFrame: Spark keeps the plans of their executions, with all that stands in them.
    packed = filtered.select(*token.names).rdd.mapPartitions(_pack).collect()
    return np.concatenate([np.frombuffer(part, np.int64).reshape(-1, 2) for part in (b"", *packed)])


def _pack(rows: Iterable[Any]) -> Iterator[bytes]:
    yield np.array([(row[0], row[1]) for row in rows], np.int64).tobytes()


def _refuse_doubled_quotes(predicate: str) -> None:
    """Elsewhere in SQL they stand for one; this Spark leaves them out, and would find someone else."""
    texts = list(_QUOTED.finditer(predicate))
    if any(one.end() == other.start() and one[0][-1] == other[0][0] != "`" for one, other in pairwise(texts)):
        raise InputError(r"The predicate cannot be followed: write a quote within a text as \', not doubled.")


def _guarded(work: Callable[[], Any], dataset: str, columns: Sequence[str]) -> Any:
    try:
        return work()
    except PySparkException as error:
        condition = error.getCondition() or ""
    except Py4JJavaError as error:
        condition = next(iter(_CONDITION.findall(str(error))), "")
    # Outside of the handlers, so that the error does not carry Spark's words along.
    reason = _REASONS.get(condition.partition(".")[0], "Spark refused it")
    raise InputError(
        f"The predicate cannot be followed: {reason} ({condition or 'no reason given'}). "
        f"{dataset!r} has the columns {', '.join(columns)}. Nothing was selected."
    )


@contextmanager
def _silence() -> Iterator[None]:
    """What PySpark would log of a failure quotes the expression."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def main(arguments: list[str] | None = None) -> int:
    """Select by the predicate that is read from standard input; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.purge.select")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--by", required=True)
    chosen = parser.parse_args(arguments)
    predicate = sys.stdin.read()
    return tell_failure(lambda: _select(chosen.dataset, predicate, by=chosen.by))


def _select(dataset: str, predicate: str, *, by: str) -> None:
    settings = load_settings()
    spark = settings.spark.model_copy(update={"conf": {**settings.spark.conf, **_SILENT}})
    settings = settings.model_copy(update={"spark": spark})
    tell_progress("starting Spark")
    session = open_session(settings, "headwater-purge-select", capture_jars(settings, tell_progress))
    try:
        tell_progress(f"looking through {dataset}")
        tell(selection=select_where(session, settings, dataset, predicate, by=by).id)
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main())
