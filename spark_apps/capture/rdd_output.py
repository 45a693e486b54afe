"""A new version of a dataset from an RDD's lines: one file a task, a record known by the byte offset of its line."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import RDD

from provenance_store.lake import layout
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX, version_prefix
from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.rdd_feeds import Chain
from spark_apps.capture.rdd_taps import TellLines
from spark_apps.capture.rdd_writer import TaskInfo

if TYPE_CHECKING:
    from spark_apps.capture.spark_run import SparkRun

_SUFFIXES = {None: ".txt", "none": ".txt", "gzip": ".txt.gz"}
_CODECS = {"gzip": "org.apache.hadoop.io.compress.GzipCodec"}
# As Hadoop names what a task wrote, before the suffix of its codec.
_PART = re.compile(r"part-(\d{5,})(?:\..*)?")


def save_lines(
    run: "SparkRun", info: TaskInfo, rdd: RDD[Any], chain: Chain, *, dataset: str, compression: str | None
) -> None:
    """Write the version beside its name and hand it to the run, which publishes it when all is known to be sent."""
    if compression not in _SUFFIXES:
        raise UnsupportedOperationError(f"saveAsTextFile with compression {compression!r}", "Use None or 'gzip'")
    suffix = _SUFFIXES[compression]
    version = layout.version_of(run.settings.lake, dataset, info.run)
    layout.refuse_existing(version)
    unfinished = layout.unfinished_path(version)
    target = f"{LAKE_NAMESPACE}{version_prefix(dataset, version.name)[len(LAKE_PREFIX) :]}/"
    tap = TellLines(info, run.operation("saveAsTextFile"), chain, target, suffix)
    _write(rdd.mapPartitionsWithIndex(tap), unfinished, _CODECS.get(compression or ""))
    _settle(unfinished, suffix)
    run.outputs.append((version, unfinished))


def _write(lines: Any, folder: Path, codec: str | None) -> None:
    """What RDD.saveAsTextFile does, without its loop over lines that are bytes already."""
    jvm: Any = lines.context._jvm
    lines._bypass_serializer = True
    texts = lines._jrdd.map(jvm.BytesToString())
    if codec is None:
        texts.saveAsTextFile(str(folder))
    else:
        texts.saveAsTextFile(str(folder), jvm.java.lang.Class.forName(codec))


def _settle(folder: Path, suffix: str) -> None:
    """Give the files the names that ids rely on, and take Hadoop's own markers and checksums away."""
    for file in sorted(folder.iterdir()):
        part = _PART.fullmatch(file.name)
        if part is not None:
            file.rename(folder / f"part-{part[1]}{suffix}")
        elif file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
