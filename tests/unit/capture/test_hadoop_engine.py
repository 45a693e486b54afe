"""What needs no Hadoop to be shown: the client's log, its configuration, its command line."""

from pathlib import Path

import pytest

from provenance_store.errors import InputError, JobError, SettingsError
from provenance_store.settings import Settings
from spark_apps.capture.hadoop import _read_log
from spark_apps.capture.hadoop_engine import _check_path, quote_command
from spark_apps.capture.hadoop_job import load_job
from spark_apps.capture.run import Run, count_committed

LOG = """2026-01-01 INFO mapreduce.Job: Running job: job_local7_0001
2026-01-01 INFO mapred.Task: Final Counters for attempt_local7_0001_m_000000_0: Counters: 19
\tHeadwater
\t\tmalformed tweets=1
2026-01-01 INFO mapreduce.Job: Counters: 30
\tHeadwater
\t\tmalformed tweets=3
2026-01-01 INFO streaming.StreamJob: Output directory: x
"""


def test_the_jobs_own_counters_are_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    told = _read_log(tmp_path / "log")
    assert (told.job, told.counters) == ("job_local7_0001", {"malformed tweets": 3})


def test_a_log_without_a_job_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("something else\n")
    with pytest.raises(JobError, match="something else"):
        _read_log(tmp_path / "log")


def test_a_command_with_spaces_is_quoted() -> None:
    assert quote_command(["/a b/python", "-m", "x"]) == '"/a b/python" -m x'


@pytest.mark.parametrize("name", ["a,b", "a*", "{a}", "[a]"])
def test_a_path_that_hadoop_would_expand_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="plainer path"):
        _check_path(Path("/lake") / name)


@pytest.mark.parametrize("reference", ["json", "no_such_module:JOB", "json:nothing", "json:dumps"])
def test_a_reference_that_names_no_job_is_refused(reference: str) -> None:
    with pytest.raises(InputError, match=r"names no job|not a HadoopJob"):
        load_job(reference)


def test_a_committed_attempt_without_receipt_stops_the_manifest(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", recordings=tmp_path / "recordings")
    run = Run(settings, dic="dic", run="r1")
    with pytest.raises(JobError, match="left no receipt"):
        run.send_manifest(lambda told: count_committed(told, lambda _: True, run="r1", expected={"attempt_1"}))
