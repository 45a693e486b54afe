"""What Hadoop starts for every task: `python -m spark_apps.capture.hadoop_worker map|combine|reduce module:attribute`.

Every call of a function that gives pairs is told as a whole execution. Ids are the same on every try of a task, are
short, and say nothing about contents:

    run:m<map task>-<offset>              a call of map; what it made is run:m<map task>.<offset>
    run:c<partition>-<group>.<digest>     a call of combine; what it made is <the same>.0
    run:r<partition>-<group>              a call of reduce; its pairs are records of the lake

All pairs of one call of map are of one item, also those of different keys: each depends on the call's one line and on
nothing else. Combiners are many short processes, and need no connection: what a call of combine used travels in the
shuffle, and the reducer tells it. A digest of the items that it used names such a call within its group.
"""

import gc
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from provenance_store.errors import InputError
from provenance_store.model.ids import LAKE_NAMESPACE, LAKE_PREFIX, run_namespace
from provenance_store.model.message import Headers
from provenance_store.transport.port import Transport
from provenance_store.transport.wiring import open_task_transport
from spark_apps.capture import counters
from spark_apps.capture.hadoop_job import JOB_FILE_VARIABLE, GroupFunction, JobFile, MapFunction, load_job
from spark_apps.capture.wrapping import Run, escape, output_line, telling, unescape, unescape_all, unwrap, wrap
from spark_apps.capture.writer import Writer

Write: TypeAlias = Callable[[bytes], object]

_BUFFER = 1 << 20
_BLOCK = 1 << 18
_KINDS = ("map", "combine", "reduce")
# A map task tells of so many calls at a time: about as many as fill a message.
_BATCH = 1 << 11
# So many keys are kept as they are written in the shuffle: the same few come again and again.
_KEYS = 1 << 14
# Enough to tell the calls of one group apart; were two taken for one, the group would still depend on the same lines.
_DIGEST_BYTES = 5
# How an item that combine made begins in the shuffle; one of map is `<map task>.<offset>`.
_COMBINED = b"c"
# Prefixes bound to a task's own namespaces: of its file's records, its calls, and items.
_FILE, _CALL, _ITEM, _COMBINE = "f", "a", "i", "c"


class Tell(Protocol):
    """Where a task tells what it did."""

    def emit(self, activity: str, used: Sequence[str], generated: Sequence[str]) -> None:
        """Tell of one whole execution."""

    def emit_each(self, names: Sequence[str], *, activity: str, used: str, generated: str) -> None:
        """Tell of a whole execution for every name, whose ids are the name after these beginnings."""


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


def run_map(function: MapFunction, lines: Iterable[bytes], write: Write, tell: Tell, *, task: int) -> None:
    """Call `map` on every `<offset>TAB<line>`."""
    told: list[bytes] = []
    raw_keys: dict[str, bytes] = {}
    last: object = run_map  # no value of a pair
    raw_value = b""
    for record in lines:
        offset, _, line = record.partition(b"\t")
        middle = b""
        for key, value in function(int(offset), line.rstrip(b"\n").decode("utf-8", "surrogateescape")):
            if not middle:
                middle = b"\t%d.%b\t" % (task, offset)
                told.append(offset)
            raw_key = raw_keys.get(key)
            if raw_key is None:
                if len(raw_keys) == _KEYS:
                    raw_keys.clear()
                raw_key = raw_keys[key] = escape(key)
            if value is not last:  # many a job gives the same value again and again
                last, raw_value = value, escape(value) + b"\n"
            write(raw_key + middle + raw_value)
        if len(told) >= _BATCH:
            _tell_map(tell, told)
            told = []
    _tell_map(tell, told)


def _tell_map(tell: Tell, offsets: list[bytes]) -> None:
    if offsets:
        names = b" ".join(offsets).decode("ascii").split(" ")
        tell.emit_each(names, activity=f"{_CALL}:", used=f"{_FILE}:", generated=f"{_ITEM}:")


def run_combine(function: GroupFunction, blocks: Iterable[bytes], write: Write) -> None:
    """Call `combine` on every group; its pairs are held back until all items of the group are known."""
    raw_key = b""

    def hand_on(item: bytes, used: bytes) -> None:
        write(telling(raw_key, item, used))

    for raw_key, runs in groupby(unwrap(blocks), key=itemgetter(0)):
        group = _Group(raw_key, runs, hand_on)
        pairs = list(function(group.key, group.values)) if group else []
        items = group.finish(gave=bool(pairs))
        if not pairs:
            continue
        item = _COMBINED + blake2b(items, digest_size=_DIGEST_BYTES).hexdigest().encode("ascii")
        write(telling(raw_key, item, items))
        for key, value in pairs:
            if key != group.key:
                raise InputError("combine gave a pair with another key than its group's; Hadoop needs the same.")
            write(wrap(raw_key, item, value))


def run_reduce(function: GroupFunction, blocks: Iterable[bytes], write: Write, tell: Tell, tell_combined: Tell) -> None:
    """Call `reduce` on every group, counting the bytes written: a record's position is where its line begins."""
    position = number = 0

    def hear(item: bytes, used: bytes) -> None:
        call = f"{_COMBINE}:{number:x}.{item.removeprefix(_COMBINED).decode('ascii')}"
        tell_combined.emit(call, _entities(used, number), (f"{call}.0",))

    for number, (raw_key, runs) in enumerate(groupby(unwrap(blocks), key=itemgetter(0))):
        group = _Group(raw_key, runs, hear)
        generated: list[str] = []
        for key, value in function(group.key, group.values) if group else ():
            line = output_line(key, value)
            generated.append(f"{_FILE}:{position}")
            write(line)
            position += len(line)
        items = group.finish(gave=bool(generated))
        if generated:
            tell.emit(f"{_CALL}:{number:x}", _entities(items, number), generated)


class _Group:
    """What came of one key: the values, which are read as the function asks for them, and the items of all pairs.

    It is false where there are only tellings, because combine has left no pair of the key. Tellings are heard as they
    come, as all of a frequent key's together may be long.
    """

    __slots__ = ("_hear", "_items", "_parts", "key", "values")

    def __init__(self, raw_key: bytes, runs: Iterable[Run], hear: Callable[[bytes, bytes], None]) -> None:
        self.key = unescape(raw_key)
        self._hear = hear
        self._items: dict[bytes, None] = {}
        self._parts = self._read(runs)
        self.values = chain(next(self._parts, ()), chain.from_iterable(self._parts))

    def __bool__(self) -> bool:
        return bool(self._items)

    def finish(self, *, gave: bool) -> bytes:
        """The items of all pairs, with spaces between, also of those that the function did not care to read."""
        for _ in self._parts:
            pass
        if self._items and not gave:
            counters.increment(counters.GAVE_NOTHING)
        return b" ".join(self._items)

    def _read(self, runs: Iterable[Run]) -> Iterator[list[str]]:
        for _, items, values, tellings in runs:
            for item, used in tellings:
                self._hear(item, used)
            if items:
                self._items.update(dict.fromkeys(items))
                yield unescape_all(values)


def _entities(items: bytes, group: int) -> list[str]:
    """The ids of items, with spaces between, as they are told."""
    text = items.decode("ascii")
    if _COMBINED not in items:
        return f"{_ITEM}:{text.replace(' ', f' {_ITEM}:')}".split(" ")
    return [
        f"{_COMBINE}:{group:x}.{item[1:]}.0" if item.startswith("c") else f"{_ITEM}:{item}" for item in text.split(" ")
    ]


def run_task(kind: str, reference: str, *, job_file: JobFile, task: Task, source: BinaryIO, write: Write) -> None:
    """One process of one attempt that tells what it does: run its function on all it is given, and leave receipts."""
    job = load_job(reference)
    transport = open_task_transport(job_file.settings)
    namespace = run_namespace(job_file.run)
    if kind == "map":
        prefixes = {
            _FILE: _expand(job_file.input_prefix(task.input_file)),
            _CALL: f"{namespace}m{task.partition}-",
            _ITEM: f"{namespace}m{task.partition}.",
        }
        writers = [_open_writer(transport, job_file, task, "map", prefixes)]
        places = job_file.input_places(task.input_file)
        lines = source if places is None else place_lines(source, places)
        run_map(job.map, lines, write, writers[0], task=task.partition)
    else:
        prefixes = {
            _FILE: _expand(job_file.output_prefix(task.partition)),
            _CALL: f"{namespace}r{task.partition}-",
            _COMBINE: f"{namespace}c{task.partition}-",
            _ITEM: f"{namespace}m",
        }
        writers = [_open_writer(transport, job_file, task, "reduce", prefixes)]
        if job.combine is not None:
            writers.append(_open_writer(transport, job_file, task, "combine", prefixes))
        run_reduce(job.reduce, _blocks(source), write, writers[0], writers[-1])
    lost = sum(writer.close() for writer in writers)
    if lost:
        counters.increment(counters.UNREPORTED, lost)


def place_lines(lines: Iterable[bytes], pairs: bytes) -> Iterator[bytes]:
    """Every `<offset>TAB<line>` of a rewritten file under the position in its id."""
    from provenance_store.lake.places import Places  # noqa: PLC0415 - few files are rewritten, and numpy loads slowly

    places = Places.from_bytes(pairs)
    for record in lines:
        offset, tab, line = record.partition(b"\t")
        yield b"%d%b%b" % (places.original([int(offset)])[0], tab, line)


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


def combine_task(reference: str, *, source: BinaryIO, write: Write) -> None:
    """One process of a combiner, of which Hadoop starts one for every spill and partition, and again for merges."""
    job = load_job(reference)
    if job.combine is None:
        raise InputError(f"{reference} has no combine.")
    run_combine(job.combine, _blocks(source), write)


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    return iter(partial(source.read, _BLOCK), b"")


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
            combine_task(reference, source=sys.stdin.buffer, write=output.write)
        else:
            job_file = JobFile.read(Path(os.environ[JOB_FILE_VARIABLE]))
            run_task(kind, reference, job_file=job_file, task=task, source=sys.stdin.buffer, write=output.write)
        counters.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
