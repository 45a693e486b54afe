import pickle
from collections import namedtuple
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.capture.errors import UnsupportedOperationError
from spark_apps.capture.rdd_keys import _CACHED_NAMES, GroupNames, encode_key


class Colour(IntEnum):
    RED = 1


class Word(StrEnum):
    A = "a"


class Loose(str):
    """A text that finds other texts equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


Point = namedtuple("Point", "x y")

numbers = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, float("inf"), float("-inf")]),
    st.decimals(allow_nan=False, allow_infinity=True, places=2),
    st.fractions(max_denominator=8),
)
zones = st.sampled_from([None, UTC, timezone(timedelta(hours=2)), timezone(timedelta(minutes=-30))])
atoms = st.one_of(
    numbers,
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.dates(),
    st.builds(lambda hour, zone: datetime(2026, 1, 1, hour, 30, tzinfo=zone), st.integers(0, 5), zones),
    st.timedeltas(),
    st.uuids(),
)
keys = st.recursive(
    atoms, lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3))
)


@given(keys, keys)
def test_names_are_equal_just_when_keys_are(one: Any, other: Any) -> None:
    assert (encode_key(one) == encode_key(other)) == (one == other)


@given(st.lists(numbers, min_size=2, max_size=6))
def test_numbers_of_all_kinds_compare_by_value(found: list[Any]) -> None:
    for one in found:
        for other in found:
            assert (encode_key((one, "x")) == encode_key((other, "x"))) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.5, Fraction(1, 2)),
        (0, -0.0),
        (10**30, Decimal(10) ** 30),
        ((1, (2,)), (1.0, (2.0,))),
        (Point(1, "a"), (1, "a")),
        (Colour.RED, 1),
        (Word.A, "a"),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
        (datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 12, fold=1)),  # noqa: DTZ001 - times without a zone are keys too
    ],
)
def test_what_python_finds_equal_is_one_group(one: Any, other: Any) -> None:
    assert one == other
    assert encode_key(one) == encode_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", 1),
        (b"a", "a"),
        (("a", "b"), ("ab",)),
        (("a", ("b",)), ("a", "b")),
        ((), None),
        (date(2026, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001
        (2**53, 2**53 + 1),
        (0.1, Decimal("0.1")),
        (frozenset(), ()),
        (UUID(int=1), 1),
    ],
)
def test_what_python_tells_apart_are_two_groups(one: Any, other: Any) -> None:
    assert encode_key(one) != encode_key(other)


@pytest.mark.parametrize(
    ("key", "named"),
    [
        (float("nan"), "not equal to itself"),
        (("a", float("nan")), "not equal to itself"),
        (Decimal("NaN"), "not equal to itself"),
        (Loose("a"), "Loose"),
        (object(), "builtins.object"),
        (1j, "builtins.complex"),
        (datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Paris")), "zone whose offset changes"),
    ],
)
def test_a_key_that_cannot_be_told_exactly_is_refused_by_name(key: Any, named: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=named):
        GroupNames(b"secret", "reduceByKey-1").of(key)


def test_a_name_is_of_the_run_and_the_operation_and_tells_nothing() -> None:
    names = {
        GroupNames(secret, operation).of("ada@example.org")
        for secret in (b"one", b"two")
        for operation in ("reduceByKey-1", "reduceByKey-2")
    }
    assert len(names) == 4
    assert all(len(name) == 27 and name.startswith("run:g") and "ada" not in name for name in names)


def test_a_name_is_the_same_in_another_process() -> None:
    names = GroupNames(b"secret", "distinct-1")
    travelled = pickle.loads(pickle.dumps(names))  # noqa: S301 - as Spark does
    assert travelled.of(("é", 1)) == names.make(("é", True)) == names.of(("é", 1.0))


def test_few_names_are_remembered() -> None:
    names = GroupNames(b"secret", "distinct-1")
    first = names.of(0)
    for key in range(_CACHED_NAMES + 10):
        names.of(key)
    assert len(names._names) <= _CACHED_NAMES
    assert names.of(0) == first
