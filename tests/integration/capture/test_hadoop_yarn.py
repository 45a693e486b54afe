"""The same job on YARN with HDFS, where a mapper's first attempt fails after all it had to say was said."""

import sys
from pathlib import Path

import pytest

from provenance_store.lake import tweets
from provenance_store.model.message import Manifest
from provenance_store.settings import Settings
from provenance_store.transport.wiring import open_transport
from spark_apps.capture.hadoop import run_job
from spark_apps.capture.hadoop_engine import YarnEngine
from tests.integration.capture.test_hadoop import check_hashtag_count

FLAKY_JOB = """
import atexit
import os

from spark_apps.dics import hashtag_count

if os.environ.get("mapreduce_task_attempt_id", "").endswith("_m_000000_0"):
    # Everything is sent and the receipt is left; then the process dies, and Hadoop tries the task again.
    atexit.register(os._exit, 3)

JOB = hashtag_count.JOB
"""


@pytest.mark.timeout(900)
def test_a_failed_attempt_on_yarn_does_not_count(
    hadoop_service: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "flaky_job.py").write_text(FLAKY_JOB)
    # Workers of the local cluster see this machine's files; they do not inherit the driver's environment.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={modules} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.syspath_prepend(str(modules))
    settings = hadoop_service.model_copy(
        update={
            "lake": tmp_path / "lake",
            "recordings": tmp_path / "recordings",
            "hadoop": hadoop_service.hadoop.model_copy(update={"framework": "yarn"}),
        }
    )
    tweets.generate(settings.lake, count=2000, seed=5, files=2)
    result = run_job("flaky_job:JOB", settings=settings, run="yarn-1", inputs=["tweets"], python=str(python))
    check_hashtag_count(settings, result)
    left = YarnEngine(settings, tmp_path, print)._call("org.apache.hadoop.fs.FsShell", "-ls", "/headwater/executions")
    assert (left.returncode, left.stdout.strip()) == (0, "")
    messages = [one.message for one in open_transport(settings).source(result.topic)]
    attempts = {one.headers["attempt"] for one in messages if one.headers["kind"] == "provenance"}
    manifest = next(Manifest.from_bytes(one.value) for one in messages if one.headers["kind"] == "manifest")
    discarded = attempts - manifest.attempts.keys()
    assert discarded
    assert all("_m_000000_0/" in attempt for attempt in discarded)
