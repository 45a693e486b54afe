"""Sums, less what deleted inputs added."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.purge.matching import Found
from provenance_store.purge.subtraction import take_away

COLUMNS = {"format": "text", "columns": ["name", "n", "cents"], "separator": "\t"}
TOLD = {**COLUMNS, "key": ["name"], "policy": {"do": "recompute", "sums": ["n", "cents"]}}


def told(**changes: object) -> Dataset:
    return msgspec.convert({**TOLD, **changes}, Dataset)


def found(lines: list[bytes]) -> Found:
    return Found("f", np.arange(len(lines)), lines)


def add_up(items: list[tuple[str, int]]) -> dict[str, bytes]:
    names = sorted({name for name, _ in items})
    cents = {name: [value for one, value in items if one == name] for name in names}
    return {name: f"{name}\t{len(values)}\t{sum(values)}".encode() for name, values in cents.items()}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9), st.booleans())))
def test_it_is_what_the_others_add_up_to(items: list[tuple[str, int, bool]]) -> None:
    before = add_up([(name, cents) for name, cents, _ in items])
    gone = add_up([(name, cents) for name, cents, goes in items if goes])
    stays = add_up([(name, cents) for name, cents, goes in items if not goes])
    assert take_away(told(), [found(list(before.values()))], list(gone.values())) == list(stays.values())


@pytest.mark.parametrize(("line", "said"), [(b"a\tmany\t1", "no whole number"), (b"a\t1", "cannot be divided")])
def test_what_is_no_sum_is_refused(line: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        take_away(told(), [found([line])], [b"a\t1\t1"])


@pytest.mark.parametrize(
    "changes",
    [
        {"key": []},
        {"policy": {"do": "recompute", "sums": ["n"]}},
        {"format": "csv", "separator": None},
        {"policy": {"do": "recompute", "sums": ["n", "euros"]}},
    ],
)
def test_only_sums_and_a_key_can_be_subtracted_from(changes: dict[str, object]) -> None:
    with pytest.raises((InputError, msgspec.ValidationError), match="sums are for divided lines"):
        told(**changes)
