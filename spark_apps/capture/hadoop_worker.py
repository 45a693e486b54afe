"""What Hadoop starts for every task: `python -m spark_apps.capture.hadoop_worker map|combine|reduce module:attribute`.

Ids of items and executions are the same on every try of a task, are short, and say nothing about contents:

    run:m<map task>-<line's offset, hex>      a call of map;       its pairs are <it>.0, <it>.1, …
    run:c<hash of the ids that it used>       a call of combine;   its pairs likewise
    run:r<partition>-<number of group, hex>   a call of reduce;    its pairs are records of the lake

A call that gives no pair leads nowhere and leaves nothing.
"""

import os
import socket
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from provenance_store.errors import InputError
from provenance_store.model.message import Headers
from provenance_store.transport.wiring import open_transport
from spark_apps.capture import counters
from spark_apps.capture.hadoop_job import JOB_FILE_VARIABLE, GroupFunction, JobFile, MapFunction, load_job
from spark_apps.capture.wrapping import Item, escape, output_line, unescape, unwrap, wrap
from spark_apps.capture.writer import Writer

Emit: TypeAlias = Callable[[str, Sequence[str], Sequence[str]], None]
Write: TypeAlias = Callable[[bytes], object]

_ID_BYTES = 16
_BUFFER = 1 << 20
_KINDS = ("map", "combine", "reduce")


@dataclass(frozen=True, slots=True)
class Task:
    """Which try of which task Hadoop started this process for, from the environment it gives."""

    attempt: str
    task: str
    partition: int
    input_file: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Task":
        """As streaming hands the job's configuration to its processes."""
        try:
            return cls(
                environment["mapreduce_task_attempt_id"],
                environment["mapreduce_task_id"],
                int(environment["mapreduce_task_partition"]),
                environment.get("mapreduce_map_input_file", ""),
            )
        except KeyError as error:
            raise InputError(
                f"{error} is not in the environment: this program is started by Hadoop Streaming."
            ) from None


def run_map(function: MapFunction, lines: Iterable[bytes], write: Write, emit: Emit, *, task: int, prefix: str) -> None:
    """Call `map` on every `<offset>TAB<line>`."""
    for record in lines:
        position, _, line = record.partition(b"\t")
        offset = int(position)
        activity = f"run:m{task}-{offset:x}"
        items: list[str] = []
        for key, value in function(offset, line.rstrip(b"\n").decode("utf-8", "surrogateescape")):
            item = f"{activity}.{len(items)}"
            items.append(item)
            write(wrap(key, item, value))
        if items:
            emit(activity, (f"{prefix}{offset}",), items)


def run_combine(function: GroupFunction, lines: Iterable[bytes], write: Write, emit: Emit) -> None:
    """Call `combine` on every group; its pairs are held back until all ids of the group are known."""
    for raw_key, group in groupby(map(unwrap, lines), key=itemgetter(0)):
        used: list[str] = []
        pairs = list(function(unescape(raw_key), _values(group, used)))
        _drain(group, used)  # noqa: B031 - the rest of the same group is meant
        digest = blake2b("\n".join(sorted(used)).encode("ascii"), digest_size=_ID_BYTES).digest()
        activity = f"run:c{urlsafe_b64encode(digest).rstrip(b'=').decode('ascii')}"
        items = [f"{activity}.{number}" for number in range(len(pairs))]
        for (key, value), item in zip(pairs, items, strict=True):
            if escape(key) != raw_key:
                raise InputError("combine gave a pair with another key than its group's; Hadoop needs the same.")
            write(wrap(key, item, value))
        if items:
            emit(activity, used, items)


def run_reduce(
    function: GroupFunction, lines: Iterable[bytes], write: Write, emit: Emit, *, partition: int, prefix: str
) -> None:
    """Call `reduce` on every group, counting the bytes written: a record's position is where its line begins."""
    position = 0
    for number, (raw_key, group) in enumerate(groupby(map(unwrap, lines), key=itemgetter(0))):
        used: list[str] = []
        generated: list[str] = []
        for key, value in function(unescape(raw_key), _values(group, used)):
            line = output_line(key, value)
            generated.append(f"{prefix}{position}")
            write(line)
            position += len(line)
        # An output depends on every record of its group, also on those that the function did not care to read.
        _drain(group, used)
        if generated:
            emit(f"run:r{partition}-{number:x}", used, generated)


def _values(group: Iterator[Item], used: list[str]) -> Iterator[str]:
    for _, item, value in group:
        used.append(item)
        yield value


def _drain(group: Iterator[Item], used: list[str]) -> None:
    used.extend(item for _, item, _ in group)


def run_task(kind: str, reference: str, *, job_file: JobFile, task: Task, lines: Iterable[bytes], write: Write) -> None:
    """One process of one attempt: run its function on all it is given, and leave the receipt."""
    job = load_job(reference)
    # Hadoop starts a combiner for every spill and partition, and again when it merges: each is a writer of its own.
    suffix = f"-{os.urandom(6).hex()}" if kind == "combine" else ""
    headers = Headers(
        run=job_file.run,
        dic=job_file.dic,
        attempt=f"{task.attempt}/{kind}{suffix}",
        seq=0,
        task=task.task,
        function=kind,
        node=socket.gethostname(),
    )
    transport = open_transport(job_file.open_settings())
    writer = Writer(transport, job_file.topic, headers, task_attempt=task.attempt, policy=job_file.policy)
    if kind == "map":
        prefix = job_file.input_prefix(task.input_file)
        run_map(job.map, lines, write, writer.emit, task=task.partition, prefix=prefix)
    elif kind == "combine":
        if job.combine is None:
            raise InputError(f"{reference} has no combine.")
        run_combine(job.combine, lines, write, writer.emit)
    else:
        prefix = job_file.output_prefix(task.partition)
        run_reduce(job.reduce, lines, write, writer.emit, partition=task.partition, prefix=prefix)
    lost = writer.close()
    if lost:
        counters.increment(counters.UNREPORTED, lost)
    counters.flush()


def main(arguments: Sequence[str]) -> None:
    """Connect the task to Hadoop's pipes."""
    if len(arguments) != len(("kind", "reference")) or arguments[0] not in _KINDS:
        raise InputError(f"usage: python -m spark_apps.capture.hadoop_worker {'|'.join(_KINDS)} module:attribute")
    kind, reference = arguments
    task = Task.from_environment(os.environ)
    job_file = JobFile.read(Path(os.environ[JOB_FILE_VARIABLE]))
    # A print in a user's function would land among the pairs: from here on stdout is stderr for everyone but us.
    pipe = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with os.fdopen(pipe, "wb", buffering=_BUFFER) as output:
        run_task(kind, reference, job_file=job_file, task=task, lines=sys.stdin.buffer, write=output.write)


if __name__ == "__main__":
    main(sys.argv[1:])
