"""`python -m spark_apps.bench.purge [--tweets N]`: one handle purged, beside the pipeline run again without it.

Tells its caller what happens in JSON lines on standard output: `{"progress": …}`, `{"row": {…}}` for each way, or
`{"error": …, "kind": …}`. All of it happens in a folder and with a Neo4j of its own. The pipeline is run as users run
it, captured; what a rerun would take to reduce and merge its provenance is not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from provenance_store.bench.graph import own_neo4j
from provenance_store.errors import JobError
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake import layout, tweets
from provenance_store.lake.records import lines_of
from provenance_store.purge.apply import apply
from provenance_store.purge.approval import approve
from provenance_store.purge.planning import make_plan
from provenance_store.reduction import output
from provenance_store.reduction.exact import reduce_messages
from provenance_store.services.application import tell, tell_failure, tell_progress
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.bench.usage import processor_seconds
from spark_apps.capture.jar import capture_jars
from spark_apps.purge.engine import SparkEngine
from spark_apps.purge.rerun import Rerun
from spark_apps.purge.select import select_where
from spark_apps.session import open_session

_DICS = {
    "hashtag_counts": ("spark_apps.dics.hashtag_count", ["tweets"]),
    "category_totals": ("spark_apps.dics.category_totals", ["hashtag_counts", "categories"]),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.bench.purge")
    parser.add_argument("--tweets", type=int, default=1_000_000)
    given = parser.parse_args(arguments)
    return tell_failure(lambda: _measure(given.tweets))


def _measure(count: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder,
        own_neo4j(Path(folder) / "home", tell_progress) as base,
    ):
        root = Path(folder)
        settings = base.model_copy(update={"lake": root / "lake", "recordings": root / "recordings"})
        made = tweets.generate(settings.lake, count=count, seed=1)
        for dataset in _DICS:
            tell_progress(f"making {dataset}")
            _run(settings, dataset, "first")
        with LakeGraph(settings) as graph:
            _merge(settings, graph, root / "reduced")
            _purge(settings, graph, made)
        tell_progress("running the pipeline again")
        with _measured("pipeline again") as row:
            before = _processor()
            for dataset in _DICS:
                _run(settings, dataset, "again")
            read = [one for _, inputs in _DICS.values() for one in inputs]
            row |= {"bytes": sum(_size(one, settings) for one in read), "rerun_cpu": _processor() - before}
        _compare(settings)


def _run(settings: Settings, dataset: str, run: str) -> None:
    module, inputs = _DICS[dataset]
    versions = {"hashtag_counts": f"{run}-hashtag_counts"}
    named = [f"--input={one}/{versions[one]}" if one in versions else f"--input={one}" for one in inputs]
    command = [sys.executable, "-m", module, f"--run={run}-{dataset}", f"--lake={settings.lake}", *named]
    environment = {"HEADWATER_HOME": str(settings.home), "HEADWATER_RECORDINGS": str(settings.recordings)}
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=False)
    if done.returncode:
        raise JobError(f"{module} failed:\n{done.stderr.decode()[-2000:]}")


def _merge(settings: Settings, graph: LakeGraph, folder: Path) -> None:
    for topic in sorted((settings.recordings or folder).glob("headwater.*")):
        tell_progress(f"reducing and merging {topic.name}")
        for reduced in output.write(folder / topic.name, reduce_messages(RecordingSource(topic))):
            graph.merge(reduced)


def _purge(settings: Settings, graph: LakeGraph, made: layout.Version) -> None:
    _, line = next(lines_of(made))
    handle = json.loads(line)["handle"]
    spark = open_session(settings, "headwater-bench", capture_jars(settings, tell_progress))
    try:
        tell_progress("selecting a handle")
        selection = select_where(spark, settings, "tweets", f"handle = '{handle}'", by="bench")
        plan = make_plan(settings, graph, selection.id, by="bench", say=tell_progress)
        approve(settings, graph, plan.id, by="bench")
        reads = sum(step.reads for step in plan.plan.steps)
        touched = {step.dataset: step.selected + step.reached for step in plan.plan.steps}
        engine = _Engine(spark)
        with _measured("purge") as row:
            certificate = apply(settings, graph, plan.id, engine, tell_progress)
            row |= {"reads": reads, "touched": touched, "bytes": engine.bytes_read, "rerun_cpu": engine.processor}
        if failed := [finding.sentence for finding in certificate.findings if finding.passed is False]:
            raise JobError(f"The purge did not verify: {failed[0]}")
    finally:
        spark.stop()


class _Engine(SparkEngine):
    """Notes what DICs read when they are run again, and what that costs."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(lambda: spark)
        self.bytes_read = 0
        self.processor = 0.0
        self._plain = Rerun(lambda: spark)

    @property
    def rerun(self) -> Any:
        return self._rerun

    def _rerun(self, dic: str, settings: Settings, **how: Any) -> None:
        self.bytes_read += sum(_size(one, settings) for one in how["inputs"])
        before = _processor()
        self._plain(dic, settings, **how)
        self.processor += _processor() - before


def _size(reference: str, settings: Settings) -> int:
    return sum(file.stat().st_size for file in layout.resolve(settings.lake, reference).files())


def _processor() -> float:
    return time.process_time() + processor_seconds()


@contextmanager
def _measured(way: str) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = {"way": way}
    began, used = time.monotonic(), _processor()
    yield row
    tell(row={**row, "seconds": time.monotonic() - began, "cpu": _processor() - used})


def _compare(settings: Settings) -> None:
    """Hold what the purge left to what the pipeline made of what is left."""
    for dataset in _DICS:
        purged, again = (
            Counter(line for _, line in lines_of(layout.version_of(settings.lake, dataset, f"{run}-{dataset}")))
            for run in ("first", "again")
        )
        if purged != again:
            raise JobError(f"After the purge {dataset} differs from what the pipeline makes of what is left.")


if __name__ == "__main__":
    sys.exit(main())
