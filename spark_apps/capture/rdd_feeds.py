"""What stands at both ends of a narrow chain: which token each value has, without a token beside each value.

A chain of map, filter and flatMap pulls one value at a time, so whatever comes out of it was made from the value that
went in last. A feed takes a partition as Spark stores it, leaves each value's token in a cell and hands the bare value
on; who stands at the end of the chain finds in the cell the token of what comes out. The functions between see values
only, at the speed of Python's own `map` and `filter`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from pyspark.util import fail_on_stopiteration

from spark_apps.capture.rdd_keys import GroupNames
from spark_apps.capture.rdd_writer import Token, merge

Cell: TypeAlias = list[Token]
Feed: TypeAlias = Callable[[Iterable[Any], Cell], Iterator[Any]]
Step: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
Function: TypeAlias = Callable[..., Any]


# --- feeds: how tokens are stored


def texts(partition: Iterable[str], cell: Cell) -> Iterator[str]:
    """Lines of files as they are read, each behind its token and a tab."""
    for text in partition:
        cell[0], _, line = text.partition("\t")
        yield line


def tokened(partition: Iterable[tuple[Token, Any]], cell: Cell) -> Iterator[Any]:
    """Pairs of a token and a value."""
    for cell[0], value in partition:
        yield value


def keyed(partition: Iterable[tuple[Any, tuple[Token, Any]]], cell: Cell) -> Iterator[tuple[Any, Any]]:
    """Pairs of a key and a value, the token beside the value."""
    for key, (cell[0], value) in partition:
        yield key, value


def joined(partition: Iterable[tuple[Any, tuple[Any, Any]]], cell: Cell) -> Iterator[tuple[Any, tuple[Any, Any]]]:
    """What a join made: a key with two values, each beside its token, or None where an outer join found no match."""
    for key, (left, right) in partition:
        if right is None:
            cell[0], value = left
            yield key, (value, None)
        elif left is None:
            cell[0], value = right
            yield key, (None, value)
        else:
            cell[0] = merge(left[0], right[0])
            yield key, (left[1], right[1])


def numbered(partition: Iterable[tuple[tuple[Token, Any], int]], cell: Cell) -> Iterator[tuple[Any, int]]:
    """What zipWithIndex made of pairs of a token and a value."""
    for (cell[0], value), number in partition:
        yield value, number


def constants(partition: Iterable[Any], cell: Cell) -> Iterator[Any]:
    """Values that no record stands behind."""
    cell[0] = ()
    yield from partition


class Groups:
    """Groups by key: the token is the group's name."""

    def __init__(self, names: GroupNames) -> None:
        self._names = names

    def __call__(self, partition: Iterable[Any], cell: Cell) -> Iterator[Any]:
        """Pairs of a key and what was made of its records."""
        name = self._names.make
        for pair in partition:
            cell[0] = name(pair[0])
            yield pair


class DistinctValues:
    """Groups of equal values: the token is the group's name."""

    def __init__(self, names: GroupNames) -> None:
        self._names = names

    def __call__(self, partition: Iterable[Any], cell: Cell) -> Iterator[Any]:
        """Values, each once."""
        name = self._names.make
        for value in partition:
            cell[0] = name(value)
            yield value


# --- steps: what may stand between


class Map:
    """As Spark's map."""

    def __init__(self, function: Function) -> None:
        self._function = fail_on_stopiteration(function)

    def __call__(self, values: Iterator[Any]) -> Iterator[Any]:
        """One for each."""
        return map(self._function, values)


class Filter:
    """As Spark's filter."""

    def __init__(self, function: Function) -> None:
        self._function = fail_on_stopiteration(function)

    def __call__(self, values: Iterator[Any]) -> Iterator[Any]:
        """Those for which it is true."""
        return filter(self._function, values)


class FlatMap:
    """As Spark's flatMap."""

    def __init__(self, function: Function) -> None:
        self._function = fail_on_stopiteration(function)

    def __call__(self, values: Iterator[Any]) -> Iterator[Any]:
        """Any number for each."""
        return chain.from_iterable(map(self._function, values))


class Chain:
    """A feed and the steps after it."""

    def __init__(self, feed: Feed, steps: Sequence[Step]) -> None:
        self._feed = feed
        self._steps = steps

    def __call__(self, partition: Iterable[Any], cell: Cell) -> Iterator[Any]:
        """The values that come out; the cell has the token of the one that came last."""
        values = self._feed(partition, cell)
        for step in self._steps:
            values = step(values)
        return values


# --- ends: tokens beside values again, for where Spark itself moves them


class AsTokened:
    """Ends a chain in pairs of a token and a value."""

    def __init__(self, chained: Chain) -> None:
        self._chain = chained

    def __call__(self, _: int, partition: Iterable[Any]) -> Iterator[tuple[Token, Any]]:
        """What `tokened` reads."""
        cell: Cell = [()]
        for value in self._chain(partition, cell):
            yield cell[0], value


class AsKeyed:
    """Ends a chain of pairs in pairs of a key and a value with its token."""

    def __init__(self, chained: Chain) -> None:
        self._chain = chained

    def __call__(self, _: int, partition: Iterable[Any]) -> Iterator[tuple[Any, tuple[Token, Any]]]:
        """What `keyed` reads."""
        cell: Cell = [()]
        for key, value in self._chain(partition, cell):
            yield key, (cell[0], value)


class AsValues:
    """Ends a chain in its values, without tokens and untold."""

    def __init__(self, chained: Chain) -> None:
        self._chain = chained

    def __call__(self, _: int, partition: Iterable[Any]) -> Iterator[Any]:
        """What plain Spark would have."""
        return self._chain(partition, [()])
