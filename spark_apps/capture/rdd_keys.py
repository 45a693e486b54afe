"""The names of groups of records, computed from their keys on both sides of a shuffle, which then carries no ids.

Two keys have the same name just when Python finds them equal, because that is when Spark puts their records together:
1, 1.0 and True are one key. A name is a keyed hash under the run's secret, so it tells nothing of the key.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any
from uuid import UUID

from spark_apps.capture.errors import UnsupportedOperationError

_CACHED_NAMES = 1 << 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GroupNames:
    """The names of one operation's groups: `run:g` and 22 letters and digits. Arrives in tasks with an empty cache."""

    def __init__(self, secret: bytes, operation: str) -> None:
        self._secret = secret
        self._operation = operation
        self._start()

    def __getstate__(self) -> tuple[bytes, str]:
        return self._secret, self._operation

    def __setstate__(self, state: tuple[bytes, str]) -> None:
        self._secret, self._operation = state
        self._start()

    def _start(self) -> None:
        self._hash = blake2b(encode_key(self._operation), key=self._secret, digest_size=16)
        self._names: dict[Any, str] = {}

    def of(self, key: Any) -> str:
        """The name of the key's group; remembered, because a few keys are most of what is seen."""
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= _CACHED_NAMES:
                self._names.clear()
            name = self._names[key] = self.make(key)
        return name

    def make(self, key: Any) -> str:
        """The name of the key's group, for who asks once a key."""
        hashed = self._hash.copy()
        hashed.update(encode_key(key))
        return f"run:g{urlsafe_b64encode(hashed.digest())[:22].decode('ascii')}"


def encode_key(key: Any) -> bytes:
    """Bytes that are equal for equal keys and differ for others; UnsupportedOperationError where that is not known."""
    kind = type(key)
    if kind is str:
        data = key.encode("utf-8", "surrogatepass")
        return b"s%d:%b" % (len(data), data)
    if kind is int:
        return b"n%d/1:" % key
    if kind is tuple:
        return b"t%d:%b" % (len(key), b"".join(map(encode_key, key)))
    if key is None:
        return b"-:"
    return _encode_other(key)


def _encode_other(key: Any) -> bytes:
    for kind, encode in _ENCODERS.items():
        # A subclass may find other things equal, unless it left the comparison as it was.
        if isinstance(key, kind) and getattr(type(key), "__eq__", None) is getattr(kind, "__eq__", None):
            return encode(key)
    kind = type(key)
    raise _unsupported(f"a key of type {kind.__module__}.{kind.__qualname__}")


def _encode_number(key: float | Decimal | Fraction) -> bytes:
    """Numbers of all kinds compare by their value, so it is the value that is told."""
    if key != key:  # noqa: PLR0124 - what is not equal to itself is no number
        raise _unsupported("a key that is not equal to itself")
    try:
        numerator, denominator = key.as_integer_ratio()
    except OverflowError:
        return b"n+inf:" if key > 0 else b"n-inf:"
    return b"n%d/%d:" % (numerator, denominator)


def _encode_datetime(key: datetime) -> bytes:
    if key.tzinfo is None:
        return b"l%d:" % ((key.replace(tzinfo=UTC, fold=0) - _EPOCH) // timedelta(microseconds=1))
    if type(key.tzinfo) is timezone:
        return b"m%d:" % ((key - _EPOCH) // timedelta(microseconds=1))
    # Where clocks are put back, Python's own comparison of times in different zones is not by the instant.
    raise _unsupported("a time in a zone whose offset changes")


def _unsupported(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"grouping or joining by {what}", "Use numbers, texts, bytes, dates, None, and tuples and frozensets of them"
    )


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    int: _encode_number,  # also True and False
    float: _encode_number,
    Decimal: _encode_number,
    Fraction: _encode_number,
    str: lambda key: encode_key(str.__str__(key)),
    tuple: lambda key: encode_key(tuple(key)),  # also a named tuple, also a Row
    bytes: lambda key: b"b%d:%b" % (len(key), bytes(key)),
    frozenset: lambda key: b"f%d:%b" % (len(key), b"".join(sorted(map(encode_key, key)))),
    datetime: _encode_datetime,
    date: lambda key: b"d%d:" % key.toordinal(),
    timedelta: lambda key: b"e%d:" % (key // timedelta(microseconds=1)),
    UUID: lambda key: b"u%d:" % key.int,
}
