"""`python -m spark_apps.archive`: keep what Spark's JVM loads at every start, so that the next starts are quicker.

The JVM can write the classes that it has loaded and checked into an archive, and map that into memory when it starts:
here from ten seconds to six. An archive is for one JDK and one Spark; where it does not fit it is not used.
"""

import hashlib
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from provenance_store.services import jvm
from provenance_store.settings import Settings, load_settings

_EXIT_SECONDS = 120.0


def archive_of(settings: Settings) -> Path:
    """Where the archive for this JDK and this Spark is, or would be."""
    release = jvm.java_home() / "release"
    told = release.read_bytes() if release.exists() else str(jvm.java_home()).encode()
    stamp = hashlib.sha256(told + version("pyspark").encode()).hexdigest()[:16]
    return settings.jvm.absolute() / f"spark-classes-{stamp}.jsa"


def main() -> int:
    """Write the archive, where there is none."""
    from spark_apps.session import open_session  # noqa: PLC0415 - which looks for the archive

    settings = load_settings()
    archive = archive_of(settings)
    if archive.exists():
        return 0
    archive.parent.mkdir(parents=True, exist_ok=True)
    print("Keeping what Spark loads when it starts (half a minute, once) …", flush=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        written = Path(scratch) / archive.name
        options = f'-XX:+UseParallelGC "-XX:ArchiveClassesAtExit={written}" -Xlog:cds*=off'
        spark = open_session(settings, "headwater-archive", [], {"spark.driver.extraJavaOptions": options})
        _exercise(spark, Path(scratch))
        spark.stop()
        _wait_for_exit()
        if written.exists():
            written.replace(archive)
    return 0


def _exercise(spark: SparkSession, scratch: Path) -> None:
    """Do a little of what Headwater does on Spark."""
    numbers = spark.range(0, 100, 1, 2).mapInArrow(lambda batches: batches, "id long")
    numbers.write.parquet(str(scratch / "numbers"))
    read = spark.read.parquet(str(scratch / "numbers")).selectExpr("id", "id % 7 AS part", "string(id) AS name")
    read.join(read.groupBy("part").count(), "part").distinct().toArrow()
    spark.sparkContext.parallelize(range(10), 2).map(lambda one: (one % 2, one)).reduceByKey(max).collect()
    stream = spark.readStream.schema("id long").parquet(str(scratch / "numbers"))
    written = stream.writeStream.foreachBatch(lambda batch, _: batch.toArrow()).trigger(availableNow=True).start()
    written.awaitTermination()


def _wait_for_exit() -> None:
    """The JVM writes its archive when it ends, which it does when nobody speaks to it any more."""
    gateway = SparkContext._gateway  # noqa: SLF001 - the one handle that PySpark has on its JVM
    if gateway is None:
        return
    process = gateway.proc  # type: ignore[attr-defined, unused-ignore]
    gateway.shutdown()
    process.stdin.close()
    process.wait(_EXIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
