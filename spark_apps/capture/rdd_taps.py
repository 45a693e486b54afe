"""Taps: ends of narrow chains where something is told, in the loop that hands the values on.

Records are told to be members of their group on the map side, before the shuffle, which then carries what it would
carry without capture. Telling the same again, as when a lost partition is computed anew, changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provenance_store.errors import InputError
from spark_apps.capture.rdd_feeds import Cell, Chain, Function
from spark_apps.capture.rdd_keys import GroupNames
from spark_apps.capture.rdd_writer import BATCH, TaskInfo, TaskWriter, Token


class TellMembers:
    """Each record is a member of its key's group; hands the bare values on to the shuffle."""

    def __init__(self, info: TaskInfo, operation: str, names: GroupNames, chained: Chain, *, whole: bool) -> None:
        self._info = info
        self._operation = operation
        self._names = names
        self._chain = chained
        self._whole = whole  # the whole value is the key, as for distinct

    def __call__(self, split: int, partition: Iterable[Any]) -> Iterator[Any]:
        """The values of one partition."""
        writer = TaskWriter(self._info, self._operation, split)
        cell: Cell = [()]
        whole = self._whole
        groups: defaultdict[Any, list[Token]] = defaultdict(list)
        room = BATCH
        for value in self._chain(partition, cell):
            groups[value if whole else value[0]].append(cell[0])
            room -= 1
            if not room:
                self._tell(writer, groups)
                groups.clear()
                room = BATCH
            yield value
        self._tell(writer, groups)
        writer.close()

    def _tell(self, writer: TaskWriter, groups: Mapping[Any, list[Token]]) -> None:
        name = self._names.of
        writer.members((name(key), tokens) for key, tokens in groups.items())


class TellPartition:
    """A function that sees a whole partition: what it makes depends on all that it was given."""

    def __init__(
        self, info: TaskInfo, operation: str, names: GroupNames, chained: Chain, function: Function, *, settled: bool
    ) -> None:
        self._info = info
        self._operation = operation
        self._names = names
        self._chain = chained
        self._function = function
        self._settled = settled  # whether computing the partition again gives the same records

    def __call__(self, split: int, partition: Iterable[Any]) -> Iterator[tuple[Token, Any]]:
        """What the function makes, each beside the name of the partition's group."""
        writer = TaskWriter(self._info, self._operation, split)
        name = self._names.make(split if self._settled else (split, writer.attempt))
        cell: Cell = [()]
        values = self._chain(partition, cell)
        tokens: list[Token] = []

        def given() -> Iterator[Any]:
            for value in values:
                tokens.append(cell[0])
                if len(tokens) >= BATCH:
                    writer.members([(name, tokens)])
                    tokens.clear()
                yield value

        for made in self._function(split, given()):
            yield name, made
        for _ in values:  # what the function left unread was given to it all the same
            tokens.append(cell[0])
            if len(tokens) >= BATCH:
                writer.members([(name, tokens)])
                tokens.clear()
        writer.members([(name, tokens)])
        writer.close()


class TellLines:
    """Each value is a line of the partition's own file; hands on the bytes that Spark writes there."""

    def __init__(self, info: TaskInfo, operation: str, chained: Chain, target: str, suffix: str) -> None:
        self._info = info
        self._operation = operation
        self._chain = chained
        self._target = target
        self._suffix = suffix

    def __call__(self, split: int, partition: Iterable[Any]) -> Iterator[bytes]:
        """The lines of one file, in order."""
        writer = TaskWriter(self._info, self._operation, split)
        namespace = f"{self._target}part-{split:05d}{self._suffix}#"
        cell: Cell = [()]
        position = 0
        positions: list[int] = []
        tokens: list[Token] = []
        for value in self._chain(partition, cell):
            line = as_line(value)
            positions.append(position)
            tokens.append(cell[0])
            position += len(line) + 1
            if len(positions) >= BATCH:
                writer.derived(namespace, positions, tokens)
                positions, tokens = [], []
            yield line
        writer.derived(namespace, positions, tokens)
        writer.close()


def as_line(value: Any) -> bytes:
    """The bytes that Spark writes for a value, without the line break."""
    line = value if isinstance(value, bytes) else str(value).encode()
    if line is value:
        try:
            line.decode()
        except UnicodeDecodeError:
            raise InputError(
                "Bytes that are not UTF-8 cannot be a line of text: Spark would write others in their place."
            ) from None
    if b"\n" in line:
        raise InputError("A record with a line break within cannot be a line of text: it would be read as two.")
    return line
