"""The description of a stream query: the one thing that it is executed from and that its provenance is inferred from.

It is data, with functions by name, and is kept as JSON beside what the query has made.
"""

from collections import Counter
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import msgspec

from provenance_store.errors import InputError
from provenance_store.lake.layout import check_name
from provenance_store.streams.functions import Call, Function, find
from provenance_store.streams.operators import Operator


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that comes from elsewhere: from a Kafka topic, or from the files of a dataset in the lake.

    Contents are JSON objects, and `time` names the field with an event's time in milliseconds. An event may come
    `lateness` milliseconds after a later one, and takes part if it does not come later than that. Events of a topic are
    landed in the lake under `dataset`, since their contents are all that a replay needs; or, where `cache` says so,
    kept in a cache of that many bytes, of which the oldest goes first, and known by their partition and offset.
    """

    name: str
    dataset: str
    time: str = "time"
    lateness: int = 0
    topic: str | None = None
    cache: int | None = None

    @property
    def lands(self) -> bool:
        """Whether its events are landed in the lake."""
        return self.topic is not None and self.cache is None


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """A stream whose events become records of a dataset."""

    stream: str
    dataset: str


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Sources, operators and sinks. Each names the streams that it reads, in any order without a cycle.

    Where the query says `by`, fields that every event of every source has, each key of them is a lane of its own: all
    operators see only the events of their lane, and lanes are executed in parallel. Else there is one lane.

    Functions are looked for when the query is executed: to infer, nobody has to have them.
    """

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...] = ()
    sinks: tuple[Sink, ...] = ()
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "stream query")
        streams = [one.name for one in (*self.sources, *self.operators)]
        for name in streams:
            check_name(name, "stream")
        if not self.sources:
            raise InputError(f"The stream query {self.name!r} has no source, so nothing would ever happen in it.")
        self._refuse_repeated(streams, "streams are called")
        landed = [source.dataset for source in self.sources if source.lands]
        self._refuse_repeated([*landed, *(sink.dataset for sink in self.sinks)], "streams land in the dataset")
        read = {source.dataset for source in self.sources}
        if circular := [sink.dataset for sink in self.sinks if sink.dataset in read]:
            raise InputError(f"{self.name!r} would read its own results in {circular[0]!r}: write another dataset.")
        for one in self.operators:
            self._check_reader(f"operator {one.name!r}", one.inputs, streams)
        for sink in self.sinks:
            self._check_reader("a sink", (sink.stream,), streams)
            check_name(sink.dataset, "dataset")
        for source in self.sources:
            check_name(source.dataset, "dataset")
            if source.lateness < 0:
                raise InputError(f"The lateness of {source.name!r} is {source.lateness} ms: it cannot be below 0.")
            if source.cache is not None and (source.topic is None or source.cache < 1):
                raise InputError(f"{source.name!r} cannot be cached: give it a topic, and at least 1 byte.")
            if source.cache is not None:
                check_name(source.topic or "", "cached topic")
        self._refuse_repeated(list(self.by), "fields of `by` are called")
        self.ordered()

    def _refuse_repeated(self, names: list[str], what: str) -> None:
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"Two {what} {repeated[0]!r} in {self.name!r}: give each a name of its own.")

    def _check_reader(self, reader: str, read: Sequence[str], streams: list[str]) -> None:
        if not read:
            raise InputError(f"In {self.name!r} {reader} reads no stream: name its inputs.")
        if len(set(read)) < len(read):
            raise InputError(
                f"In {self.name!r} {reader} reads a stream twice: read it once, and a copy of it by an identity map."
            )
        if missing := [name for name in read if name not in streams]:
            raise InputError(
                f"In {self.name!r} {reader} reads {missing[0]!r}, which is not there. Streams: {', '.join(streams)}."
            )

    def ordered(self) -> list[Operator]:
        """The operators, each after those whose streams it reads."""
        by_name = {one.name: one for one in self.operators}
        try:
            order = TopologicalSorter({one.name: one.inputs for one in self.operators}).static_order()
            return [by_name[name] for name in order if name in by_name]
        except CycleError as error:
            raise InputError(
                f"Streams of {self.name!r} are made from themselves: {' <- '.join(error.args[1])}."
            ) from None

    def operator(self, stream: str) -> Operator | None:
        """What makes a stream; None for a source's."""
        found = next((one for one in self.operators if one.name == stream), None)
        if found is None and stream not in {one.name for one in self.sources}:
            raise InputError(f"There is no stream {stream!r} in {self.name!r}.")
        return found

    def sources_of(self, stream: str) -> set[str]:
        """The sources that a stream can be traced back to."""
        one = self.operator(stream)
        return {stream} if one is None else {source for name in one.inputs for source in self.sources_of(name)}

    def to_json(self) -> bytes:
        """What `from_json` reads."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"

    @classmethod
    def read(cls, path: Path) -> "StreamQuery":
        """The query that a file describes."""
        try:
            return cls.from_json(path.read_bytes())
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None

    @classmethod
    def from_json(cls, text: bytes) -> "StreamQuery":
        """The query that was written so; a sentence where it is none."""
        try:
            return msgspec.json.decode(text, type=cls)
        except InputError:
            raise
        except msgspec.ValidationError as error:
            cause: Any = error.__cause__
            raise (
                cause if isinstance(cause, InputError) else InputError(f"This is no stream query: {error}.")
            ) from None
        except msgspec.DecodeError as error:
            raise InputError(f"This is no stream query: {error}.") from None


def lane_key(query: StreamQuery, content: Any) -> bytes:
    """What tells the lane of a source's event; KeyError or TypeError where it has not all fields of `by`."""
    return msgspec.json.encode([content[field] for field in query.by])


def functions_of(query: StreamQuery) -> dict[str, Call]:
    """The functions that a query names; InputError where one is not there."""
    fields = [getattr(one, name) for one in query.operators for name in one.__struct_fields__]
    return {one.name: find(one.name) for one in fields if isinstance(one, Function)}
