"""DICs run again for a purge."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import SparkSession

from provenance_store.errors import InputError
from provenance_store.lake import layout
from provenance_store.lake.contents import all_lines
from provenance_store.model.dics import find_dic
from provenance_store.settings import Settings
from spark_apps.capture.hadoop import run_job
from spark_apps.capture.hadoop_job import HadoopJob
from spark_apps.capture.spark_job import SparkJob
from spark_apps.capture.wrapping import output_line
from spark_apps.purge.local_rdd import LocalRun

# Of more bytes, Hadoop and Spark make shorter work than this process, whose memory would not hold them either.
_MUCH = 256 << 20
_MUCH_FOR_OBJECTS = 64 << 20


class Rerun:
    """Runs DICs on Hadoop and in a Spark session, or their plain functions here where there is little to read."""

    def __init__(self, open_session: Callable[[], SparkSession]) -> None:
        self._open_session = open_session

    def __call__(self, dic: str, settings: Settings, *, run: str, inputs: Sequence[str], captured: bool) -> None:
        """Run it in the lake of these settings."""
        entry = find_dic(dic)
        job = getattr(entry.load(), "JOB", None)
        versions = [layout.resolve(settings.lake, reference) for reference in inputs]
        if isinstance(job, SparkJob):
            if captured or _is_more(versions, _MUCH_FOR_OBJECTS) or not compute(job, settings, run, inputs):
                job.execute(settings, self._open_session(), run=run, inputs=inputs)
        elif isinstance(job, HadoopJob):
            if captured or _is_more(versions, _MUCH):
                run_job(f"{entry.value}:JOB", settings=settings, run=run, inputs=inputs)
            else:
                call(job, versions, layout.version_of(settings.lake, job.output, run))
        else:
            raise InputError(
                f"DIC {dic} cannot be run again by a purge: let its module {entry.value} have a JOB, a SparkJob or a "
                "HadoopJob."
            )


def call(job: HadoopJob, inputs: Sequence[layout.Version], output: layout.Version) -> None:
    """What Hadoop would do with a job, without Hadoop; a combine may be left out at any time, so it is."""
    groups: dict[str, list[str]] = defaultdict(list)
    for version in inputs:
        for position, line in _lines(version):
            for key, value in job.map(position, line):
                groups[key].append(value)
    with layout.new_version(output, {}) as folder, (folder / "part-00000").open("wb") as file:
        for key in sorted(groups):
            file.writelines(output_line(*pair) for pair in job.reduce(key, iter(groups[key])))


def compute(job: SparkJob, settings: Settings, run: str, inputs: Sequence[str]) -> bool:
    """What Spark would do with a job, without Spark; whether that was possible.

    Whatever goes wrong, nothing was written: Spark then does it, or tells what is wrong as it always does.
    """
    here = LocalRun(settings, run)
    try:
        job.run(here, list(inputs))  # type: ignore[arg-type]  # it says itself what it lacks of a captured run
        here.publish(job.outputs)
    except Exception:  # whatever the DIC's own functions raise
        return False
    return True


def _lines(version: layout.Version) -> Iterator[tuple[int, str]]:
    for file in version.files():
        for positions, lines in all_lines(version, version.name_of(file)):
            for position, line in zip(positions.tolist(), lines, strict=True):
                yield position, line.decode("utf-8", "surrogateescape")


def _is_more(versions: Sequence[layout.Version], size: int) -> bool:
    return sum(file.stat().st_size for version in versions for file in version.files()) > size
