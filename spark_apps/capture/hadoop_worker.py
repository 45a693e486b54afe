"""What Hadoop starts for every task: `python -m spark_apps.capture.hadoop_worker map|combine|reduce module:attribute`.

Ids of items and executions are the same on every try of a task, are short, and say nothing about contents:

    run:m<map task>-<batch>.<number>         what the calls of map on a batch of lines made for one key
    run:c<the least of the items it used>    what calls of combine made of several such items
    run:r<partition>-<number of group, hex>  a call of reduce; its pairs are records of the lake

A key's pairs come together in one call of reduce, whatever happens to them on the way, so pairs that a map task made
for one key need no names of their own: they share an item, and the item's members are the lines they came from. Pairs
that combine makes of one item are of that item still. What combine made of several travels with the pairs, and the
reducer tells it: combiners are many short processes, and need no connection. Calls that give no pair leave nothing.
"""

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Protocol, TypeAlias

from provenance_store.errors import InputError
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX
from provenance_store.model.message import Headers
from provenance_store.transport.port import Transport
from provenance_store.transport.wiring import open_task_transport
from spark_apps.capture import counters
from spark_apps.capture.hadoop_job import JOB_FILE_VARIABLE, GroupFunction, JobFile, MapFunction, Pairs, load_job
from spark_apps.capture.wrapping import (
    TELLING,
    Line,
    end_line,
    escape,
    output_line,
    read_telling,
    start_line,
    telling,
    unescape,
    unwrap,
)
from spark_apps.capture.writer import Writer

Write: TypeAlias = Callable[[bytes], object]

_BUFFER = 1 << 20
_KINDS = ("map", "combine", "reduce")
# A map task tells what it made after so many pairs: enough that a key's pairs meet, and no burden to hold.
BATCH = 1 << 19
# The prefix bound to the namespace of the file that a map task reads, and to that of a reducer's.
_FILE = "f"


class Tell(Protocol):
    """Where a task tells what it did."""

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Tell of one whole execution."""

    def collect(self, name: str, members: Sequence[str]) -> None:
        """Tell members of a collection."""


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


def run_map(function: MapFunction, lines: Iterable[bytes], write: Write, tell: Tell, *, task: int, prefix: str) -> None:
    """Call `map` on every `<offset>TAB<line>`."""
    items = _Items(tell, task, prefix)
    of_key = items.of_key
    room = BATCH
    last: object = run_map  # no value of a pair
    end = b""
    for record in lines:
        position, _, line = record.partition(b"\t")
        offset = int(position)
        for key, value in function(offset, line.rstrip(b"\n").decode("utf-8", "surrogateescape")):
            found = of_key.get(key)
            if found is None:
                found = items.add(key, offset)
                room -= 1
            elif found[1][-1] != offset:
                found[1].append(offset)
                room -= 1
            if value is not last:  # many a job gives the same value again and again
                last, end = value, end_line(value)
            write(found[0] + end)
        if room <= 0:
            items.tell()
            room = BATCH
    items.tell()


class _Items:
    """The items of a batch: for each key the start of its lines in the shuffle, and the offsets its pairs came from."""

    def __init__(self, tell: Tell, task: int, prefix: str) -> None:
        self.of_key: dict[str, tuple[bytes, list[int]]] = {}
        self._tell = tell
        self._task = task
        self._prefix = prefix
        self._batch = 0

    def add(self, key: str, offset: int) -> tuple[bytes, list[int]]:
        """The item of a key that has none yet."""
        added = self.of_key[key] = start_line(key, self._name(len(self.of_key))), [offset]
        return added

    def tell(self) -> None:
        """Tell the members of all items, and begin the next batch."""
        prefix = self._prefix
        for number, (_, offsets) in enumerate(self.of_key.values()):
            self._tell.collect(self._name(number), [f"{prefix}{offset}" for offset in offsets])
        self.of_key.clear()
        self._batch += 1

    def _name(self, number: int) -> str:
        return f"run:m{self._task}-{self._batch}.{number}"


def run_combine(function: GroupFunction, lines: Iterable[bytes], write: Write) -> None:
    """Call `combine` on every group; its pairs are held back until all items of the group are known."""

    def hand_on(line: Line) -> None:
        write(b"%b\t%b\t%b\n" % line)  # what an earlier combiner told

    for raw_key, group in groupby(unwrap(lines), key=itemgetter(0)):
        items: dict[bytes, None] = {}
        pairs = list(_call(function, raw_key, group, items, hand_on))
        if not pairs:
            continue
        (item, *others) = items
        if others:
            item = b"run:c" + min(items).removeprefix(b"run:")
            write(telling(raw_key, item, items))
        start = b"%b\t%b\t" % (raw_key, item)
        for key, value in pairs:
            if escape(key) != raw_key:
                raise InputError("combine gave a pair with another key than its group's; Hadoop needs the same.")
            write(start + end_line(value))


def run_reduce(
    function: GroupFunction,
    lines: Iterable[bytes],
    write: Write,
    tell: Tell,
    tell_combined: Tell,
    *,
    partition: int,
    prefix: str,
) -> None:
    """Call `reduce` on every group, counting the bytes written: a record's position is where its line begins."""

    def hear(line: Line) -> None:
        tell_combined.collect(*read_telling(line))

    position = 0
    for number, (raw_key, group) in enumerate(groupby(unwrap(lines), key=itemgetter(0))):
        items: dict[bytes, None] = {}
        generated: list[str] = []
        for key, value in _call(function, raw_key, group, items, hear):
            line = output_line(key, value)
            generated.append(f"{prefix}{position}")
            write(line)
            position += len(line)
        if generated:
            tell.emit(f"run:r{partition}-{number:x}", [item.decode("ascii") for item in items], generated)


def _call(
    function: GroupFunction,
    raw_key: bytes,
    group: Iterator[Line],
    items: dict[bytes, None],
    hear: Callable[[Line], None],
) -> Pairs:
    """What the function makes of a group. It depends on pairs that the function did not care to read too."""
    values = _values(group, items, hear)
    first = next(values, None)
    if first is None:
        return  # of this key there are only tellings: combine has left no pair of it
    yield from function(unescape(raw_key), chain((first,), values))
    for _ in values:
        pass


def _values(group: Iterator[Line], items: dict[bytes, None], hear: Callable[[Line], None]) -> Iterator[str]:
    for line in group:
        _, item, value = line
        if item.startswith(TELLING):
            hear(line)
            continue
        items[item] = None
        yield unescape(value)


def run_task(kind: str, reference: str, *, job_file: JobFile, task: Task, lines: Iterable[bytes], write: Write) -> None:
    """One process of one attempt that tells what it does: run its function on all it is given, and leave receipts."""
    job = load_job(reference)
    transport = open_task_transport(job_file.settings)
    if kind == "map":
        prefixes = {_FILE: _expand(job_file.input_prefix(task.input_file))}
        writers = [_open_writer(transport, job_file, task, "map", prefixes)]
        run_map(job.map, lines, write, writers[0], task=task.partition, prefix=f"{_FILE}:")
    else:
        prefixes = {_FILE: _expand(job_file.output_prefix(task.partition))}
        writers = [_open_writer(transport, job_file, task, "reduce", prefixes)]
        if job.combine is not None:
            writers.append(_open_writer(transport, job_file, task, "combine", {}))
        run_reduce(job.reduce, lines, write, writers[0], writers[-1], partition=task.partition, prefix=f"{_FILE}:")
    lost = sum(writer.close() for writer in writers)
    if lost:
        counters.increment(counters.UNREPORTED, lost)


def _open_writer(
    transport: Transport, job_file: JobFile, task: Task, function: str, prefixes: Mapping[str, str]
) -> Writer:
    headers = Headers(
        run=job_file.run,
        dic=job_file.dic,
        attempt=f"{task.attempt}/{function}",
        seq=0,
        task=task.task,
        function=function,
        node=socket.gethostname(),
    )
    return Writer(
        transport, job_file.topic, headers, task_attempt=task.attempt, policy=job_file.policy, prefixes=prefixes
    )


def _expand(prefix: str) -> str:
    return LAKE_NAMESPACE + prefix.removeprefix(LAKE_PREFIX)


def combine_task(reference: str, *, lines: Iterable[bytes], write: Write) -> None:
    """One process of a combiner, of which Hadoop starts one for every spill and partition, and again for merges."""
    job = load_job(reference)
    if job.combine is None:
        raise InputError(f"{reference} has no combine.")
    run_combine(job.combine, lines, write)


def main(arguments: Sequence[str]) -> None:
    """Connect the task to Hadoop's pipes."""
    if len(arguments) != len(("kind", "reference")) or arguments[0] not in _KINDS:
        raise InputError(f"usage: python -m spark_apps.capture.hadoop_worker {'|'.join(_KINDS)} module:attribute")
    kind, reference = arguments
    task = Task.from_environment(os.environ)
    # A print in a user's function would land among the pairs: from here on stdout is stderr for everyone but us.
    pipe = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with os.fdopen(pipe, "wb", buffering=_BUFFER) as output:
        gc.freeze()  # what was imported stays for as long as the process lives: not to be looked at again and again
        if kind == "combine":
            combine_task(reference, lines=sys.stdin.buffer, write=output.write)
        else:
            job_file = JobFile.read(Path(os.environ[JOB_FILE_VARIABLE]))
            run_task(kind, reference, job_file=job_file, task=task, lines=sys.stdin.buffer, write=output.write)
        counters.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
