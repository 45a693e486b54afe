"""Hadoop Streaming with record-level provenance: describe a `HadoopJob`, then `run_job` it.

def map(offset, line): ...            # gives (key, value) pairs of texts
def reduce(key, values): ...
JOB = HadoopJob(dic="hashtag-count", output="hashtag_counts", map=map, combine=reduce, reduce=reduce)
run_job("my_module:JOB", settings=load_settings(), run="today", inputs=["tweets"])
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from provenance_store.errors import InputError, JobError
from provenance_store.lake import layout
from provenance_store.lake.places import read_places
from provenance_store.settings import Settings
from provenance_store.transport.wiring import make_topics
from spark_apps.capture import counters
from spark_apps.capture.hadoop_engine import ENGINES, Engine, quote_command
from spark_apps.capture.hadoop_job import JOB_FILE_VARIABLE, HadoopJob, InputRoot, JobFile, dump_settings, load_job
from spark_apps.capture.run import Run, RunResult, count_committed
from spark_apps.capture.writer import Policy

__all__ = ["HadoopJob", "RunResult", "run_job"]

# What a counter above zero says of the run: taking a record away may make outputs that were not there.
_MARKS = {counters.GAVE_NOTHING: "reduce that yields nothing"}
_WORKER = "spark_apps.capture.hadoop_worker"
_QUOTED_LINES = 25
_JOB_ID = re.compile(r"Running job: (job_\w+)")
_JOB_COUNTERS = re.compile(r"mapreduce\.Job: Counters: \d+")
_COUNTER = re.compile(r"\t\t(.+)=(\d+)")


def run_job(
    reference: str,
    *,
    settings: Settings,
    run: str,
    inputs: Sequence[str],
    policy: Policy = "fail",
    reducers: int | None = None,
    python: str = sys.executable,
    say: Callable[[str], None] = lambda _: None,
) -> RunResult:
    """Run the job that `module:attribute` names, captured; its output is version `run` of its dataset.

    `python` is the interpreter of the workers, as the nodes have it.
    """
    layout.refuse_remote(settings.lake)
    job = load_job(reference)
    context = Run(settings, dic=job.dic, run=run, policy=policy)
    if not inputs:
        raise InputError(f"{job.dic} needs an input: name a dataset, or dataset/version.")
    read = [layout.resolve(settings.lake, name) for name in inputs]
    output = layout.version_of(settings.lake, job.output, run)
    with context.alone(say):
        done = context.finished([output], read)
        if done is not None:
            say(f"run {run} is finished already; nothing was done")
            return done
        layout.remove_unfinished(output)
        engine = ENGINES[settings.hadoop.framework](settings, context.folder, say)
        execution = _Execution(
            context, engine, job, reference=reference, reducers=reducers or job.reducers, python=python
        )
        return execution.finish(read, output)


class _Execution:
    """One execution of a job: from the versions it reads to the version it writes."""

    def __init__(
        self, context: Run, engine: Engine, job: HadoopJob, *, reference: str, reducers: int, python: str
    ) -> None:
        self._context = context
        self._engine = engine
        self._job = job
        self._reference = reference
        self._reducers = reducers
        self._python = python
        self._log = context.folder / "hadoop.log"

    def finish(self, read: Sequence[layout.Version], output: layout.Version) -> RunResult:
        """Run it, send the manifest, publish the output: in this order, which `run.py` explains."""
        started = time.monotonic()
        unfinished = layout.unfinished_path(output)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._run(read, output, unfinished)
            told = _read_log(self._log)
            committed = self._engine.committed(told.job)
            self._engine.bring_home(unfinished)
            manifest, sent = self._context.send_manifest(
                lambda receipts: count_committed(
                    receipts,
                    lambda receipt: committed.contains(receipt.task_attempt),
                    run=self._context.run,
                    expected=committed.attempts,
                    lost=told.counters.get(counters.UNREPORTED, 0),
                ),
                marks=[mark for counter, mark in _MARKS.items() if told.counters.get(counter)],
            )
            result = RunResult(
                run=self._context.run,
                dic=self._context.dic,
                topic=self._context.topic,
                inputs=[version.reference for version in read],
                outputs=[output.reference],
                generation=manifest.generation,
                messages=sum(manifest.attempts.values()),
                writers=len(manifest.attempts),
                counters=told.counters,
                manifest_sent=sent,
                seconds=round(time.monotonic() - started, 3),
            )
            self._context.publish(result, {unfinished: output})
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            self._engine.clean()
        return result

    def _run(self, read: Sequence[layout.Version], output: layout.Version, unfinished: Path) -> None:
        engine = self._engine
        roots = {version: engine.read_from(version) for version in read}
        job_file = JobFile(
            run=self._context.run,
            dic=self._context.dic,
            topic=self._context.topic,
            policy=self._context.policy,
            inputs=[
                InputRoot(version.dataset, version.name, path, read_places(version)) for version, path in roots.items()
            ],
            output_dataset=output.dataset,
            output_version=output.name,
            settings=dump_settings(engine.settings),
        )
        path = self._context.folder / "job.json"
        try:
            make_topics(engine.settings, self._context.topic, required=self._context.policy == "fail")
            job_file.write(path)
            generic, seen_as = engine.ship(path)
            command = self._command(generic, seen_as, list(roots.values()), engine.write_to(unfinished))
            environment = {**os.environ, JOB_FILE_VARIABLE: seen_as, "LC_ALL": "C.UTF-8"}
            code = _run_logged(command, environment, self._log)
        finally:
            path.unlink(missing_ok=True)
        if code != 0:
            raise JobError(
                f"Hadoop job {self._context.dic}, run {self._context.run}, failed with exit code {code}; no manifest "
                f"was sent and no version was written. The whole log is {self._log}, and ends:\n{_tail(self._log)}"
            )

    def _command(self, generic: list[str], job_file: str, inputs: list[str], output: str) -> list[str]:
        options = {
            "mapreduce.job.name": f"headwater {self._context.dic} {self._context.run}",
            "mapreduce.job.reduces": str(self._reducers),
            "mapreduce.input.fileinputformat.input.dir.recursive": "true",
            **self._engine.options(),
            **self._engine.settings.hadoop.conf,
            # What ids rely on, so it beats the user's configuration: offsets in, plain text out, tabs between.
            "stream.map.input.ignoreKey": "false",
            # Hadoop would end a line at a carriage return, too.
            "textinputformat.record.delimiter": "\n",
            "mapreduce.output.fileoutputformat.compress": "false",
            "stream.map.output.field.separator": "\t",
            "stream.num.map.output.key.fields": "1",
        }
        worker = [self._python, "-m", _WORKER]
        return self._engine.java(
            "org.apache.hadoop.streaming.HadoopStreaming",
            *(word for name, value in options.items() for word in ("-D", f"{name}={value}")),
            *generic,
            *(word for path in inputs for word in ("-input", path)),
            *("-output", output),
            *("-cmdenv", f"{JOB_FILE_VARIABLE}={job_file}") if generic else (),
            *("-mapper", quote_command([*worker, "map", self._reference])),
            *(("-combiner", quote_command([*worker, "combine", self._reference])) if self._job.combine else ()),
            *("-reducer", quote_command([*worker, "reduce", self._reference])),
        )


class _Told(msgspec.Struct):
    job: str
    counters: dict[str, int]


def _run_logged(command: Sequence[str], environment: dict[str, str], log: Path) -> int:
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _read_log(log: Path) -> _Told:
    """The job's id, and the counters that the client prints when the job has succeeded."""
    told = _Told("", {})
    within = False
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := _JOB_ID.search(line):
                told.job = found[1]
            elif _JOB_COUNTERS.search(line):
                within = True
            elif within and (found := _COUNTER.match(line)):
                told.counters[found[1]] = int(found[2])
            elif within and not line.startswith("\t"):
                within = False
    if not told.job:
        raise JobError(f"Hadoop did not tell the job's id; its log is {log}, and ends:\n{_tail(log)}")
    return told


def _tail(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        return "".join(f"  {line}" for line in deque(lines, _QUOTED_LINES)).rstrip()
