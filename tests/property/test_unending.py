"""A stream that never ends gives, step by step, what the whole of it gives at once, and carries only what it must."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.document import write_document
from provenance_store.model.message import Headers, Message
from provenance_store.reduction.local import reduce_locally
from provenance_store.reduction.schemas import NAME_SCHEMA
from provenance_store.reduction.unending import TOLD_EDGE_SCHEMA, Carried, Step, advance, move_watermark
from tests.property.test_reduction import Told, closure, flat, reduce_in_order, rename, steps


class Timed(NamedTuple):
    """A message of one partition, with the time when it was sent."""

    message: Message
    edges: list[Told]
    partition: int
    time: int


def told(number: int, edges: list[Told], *, time: int, partition: int = 0, whole: bool = True) -> Timed:
    value = write_document("r", edges)  # type: ignore[arg-type]
    message = Message.of(Headers("r", "dic", f"a{number}", 0), value) if whole else Message({}, value)
    return Timed(message, edges, partition, time)


@st.composite
def streams(draw: st.DrawFn) -> list[list[Timed]]:
    """Messages of a few partitions at any times, in any order, some twice, cut into batches anywhere."""
    drawn = draw(st.lists(steps(lake=True, max_size=4), min_size=1, max_size=8))
    whole = draw(st.booleans())
    sent = [
        told(
            number,
            flat(rename(batch, str(number))),
            time=draw(st.integers(0, 50)),
            partition=draw(st.integers(0, 2)),
            whole=whole,
        )
        for number, batch in enumerate(drawn)
    ]
    sent = draw(st.permutations(sent + draw(st.lists(st.sampled_from(sent), max_size=3))))
    batches: list[list[Timed]] = [[]]
    for one in sent:
        if batches[-1] and draw(st.booleans()):
            batches.append([])
        batches[-1].append(one)
    return batches


def shortest_period(batches: Sequence[Sequence[Timed]]) -> int:
    """How long an item must stay open so that none is told of after it was closed."""
    last_told: dict[str, int] = {}
    longest = latest = 0
    for batch in batches:
        ids = {(end, one.time) for one in batch for _, *ends in one.edges for end in ends}
        longest = max([longest, *(latest - last_told[end] for end, _ in ids if end in last_told)])
        for end, time in ids:
            last_told[end] = max(last_told.get(end, time), time)
        latest = max([latest, *(one.time for one in batch)])
    return longest


def follow(batches: Sequence[Sequence[Timed]], period: int) -> Iterator[Step]:
    """The steps of a stream; at the end a long silence, and then word that time has passed."""
    carried, watermark, times = Carried.nothing(), -(1 << 40), dict[int, int]()
    for batch in [*batches, []]:
        holding = {one.partition for one in batch}
        for one in batch:
            times[one.partition] = max(times.get(one.partition, one.time), one.time)
        watermark = move_watermark(watermark, times, holding, period=period) if batch else 1 << 40
        step = advance(carried, *columns(batch), watermark)
        carried = step.carried
        yield step


def columns(batch: Sequence[Timed]) -> tuple[pl.DataFrame, pl.DataFrame]:
    if not batch:
        return pl.DataFrame(schema=TOLD_EDGE_SCHEMA), pl.DataFrame(schema=NAME_SCHEMA)
    local = reduce_locally([one.message for one in batch], range(len(batch)))
    times = pl.Series([one.time for one in batch], dtype=pl.Int64)
    edges = local.edges()
    return edges.with_columns(told_at=times.gather(edges["message"])).select(TOLD_EDGE_SCHEMA.names()), local.names()


def union(found: Sequence[Step]) -> set[tuple[str, str]]:
    return {pair for step in found for pair in step.graph.iter_rows()}


@given(streams(), st.integers(0, 20))
def test_all_steps_together_are_the_closure(batches: list[list[Timed]], slack: int) -> None:
    found = list(follow(batches, shortest_period(batches) + slack))
    sent = [one for batch in batches for one in batch]
    expected = closure("r", [edge for one in sent for edge in one.edges])
    if any(end.startswith("lake:") for one in sent for _, *ends in one.edges for end in ends):
        assert union(found) == expected
        (whole,) = reduce_in_order([one.message for one in sent])
        assert union(found) == set(whole.graph.iter_rows())
    else:  # sinks and sources are not known before the end
        assert union(found) == set()
    assert [table.height for table in found[-1].carried] == [0, 0, 0, 0]
    assert sum(step.graph.height for step in found) == len(union(found))  # each once


@given(streams(), st.integers(0, 20))
def test_whatever_comes_too_late_nothing_is_invented(batches: list[list[Timed]], period: int) -> None:
    edges = [edge for batch in batches for one in batch for edge in one.edges]
    if any(end.startswith("lake:") for _, *ends in edges for end in ends):
        assert union(list(follow(batches, period))) <= closure("r", edges)


def chain(number: int, *, made: bool = True) -> list[Timed]:
    """An item in the middle that is told of three times: when it is made, and when it is used, twice."""
    begin: list[Told] = [
        ("used", f"run:f{number}", f"lake:in#{number}"),
        ("wasGeneratedBy", f"run:x{number}", f"run:f{number}"),
    ]
    uses: list[list[Told]] = [
        [
            ("used", f"run:g{number}{way}", f"run:x{number}"),
            ("wasGeneratedBy", f"lake:out#{number}{way}", f"run:g{number}{way}"),
        ]
        for way in "ab"
    ]
    texts = [begin, *uses] if made else uses
    return [told(number * 10 + place, text, time=number * 10 + place) for place, text in enumerate(texts)]


def test_what_is_carried_does_not_grow_with_the_stream() -> None:
    length, period = 1000, 30
    batches = [chain(number) for number in range(length)]
    found = list(follow(batches, period))
    assert len(union(found)) == 2 * length
    assert sum(step.graph.height for step in found) == 2 * length  # each once
    largest = [max(step.carried[table].height for step in found) for table in range(4)]
    # What was told in the last period and the batch that is being read, and no more.
    assert largest == [max(step.carried[table].height for step in found[:10]) for table in range(4)]
    assert max(largest) <= 3 * (period // 10 + 2)
    # A dependency is final as soon as the watermark has passed what is between: nothing waits for the end.
    assert found[period // 10 + 1].graph.height == 2


def test_what_was_used_and_never_made_is_counted_once() -> None:
    batches = [chain(number, made=number % 4 != 0) for number in range(40)]
    found = list(follow(batches, period=30))
    assert sum(step.unmade for step in found) == 10
    assert len(union(found)) == 60


def test_a_running_total_carries_all_that_it_depends_on() -> None:
    batches = [
        [
            told(
                n,
                [
                    ("wasDerivedFrom", f"run:total{n + 1}", f"run:total{n}"),
                    ("wasDerivedFrom", f"run:total{n + 1}", f"lake:in#{n}"),
                    ("wasDerivedFrom", f"lake:out#{n}", f"run:total{n + 1}"),
                ],
                time=n,
            )
        ]
        for n in range(20)
    ]
    assert union(list(follow(batches, period=1))) == {
        (f"lake:out#{n}", f"lake:in#{m}") for n in range(20) for m in range(n + 1)
    }


def test_an_execution_in_the_lakes_namespace_is_no_record() -> None:
    first: list[Told] = [("used", "lake:job", "lake:in#1")]
    second: list[Told] = [("wasGeneratedBy", "lake:out#1", "lake:job")]
    batches = [[told(n, edges, time=n, whole=False)] for n, edges in enumerate([first, second])]
    assert union(list(follow(batches, period=5))) == {("lake:out#1", "lake:in#1")}


def test_a_slow_partition_holds_the_watermark_back_and_one_read_to_its_end_does_not() -> None:
    times = {0: 1000, 1: 400}
    assert move_watermark(0, times, {0, 1}, period=100) == 300
    assert move_watermark(0, times, {0}, period=100) == 900
    assert move_watermark(950, times, {0}, period=100) == 950
    assert move_watermark(50, times, {0, 2}, period=100) == 50
    assert move_watermark(50, times, set(), period=100) == 50


def test_a_record_without_a_name_is_not_lost_in_silence() -> None:
    edges, names = columns([told(0, [("wasDerivedFrom", "lake:a", "lake:b")], time=0)])
    with pytest.raises(ValueError, match="no name"):
        advance(Carried.nothing(), edges, names.head(1), 1)
