import numpy as np
import polars as pl
import pytest

from provenance_store.model.document import RelationName, write_document
from provenance_store.reduction.contract import contract
from provenance_store.reduction.documents import Read, read_documents, summarise
from provenance_store.reduction.executions import contract_locally
from provenance_store.reduction.intern import in_lake
from provenance_store.reduction.texts import to_strings

Told = list[tuple[RelationName, str, str]]


def execution(activity: str, used: str, generated: str) -> Told:
    return [("used", f"run:{activity}", entity) for entity in used.split()] + [
        ("wasGeneratedBy", entity, f"run:{activity}") for entity in generated.split()
    ]


def read(*told: Told) -> Read:
    return read_documents([write_document("r", edges) for edges in told])


def locally(read: Read, *, whole: bool = True) -> Read:
    return read._replace(edges=contract_locally(read.edges, read.ids.lo, np.full(2, whole)))


def spell(read: Read) -> pl.Series:
    ids = read.ids.keep_all()
    return to_strings(ids.starts, ids.stops)


def graph(read: Read, *, names_records: bool) -> set[tuple[str, str]]:
    _, relation, dependent, dependency = read.edges
    pairs = contract(relation, dependent, dependency, in_lake(read.ids.lo), names_records=names_records)
    names = spell(read)
    found = list(zip(names.gather(pairs.output), names.gather(pairs.input), strict=True))
    assert len(found) == len(set(found))
    return set(found)


def reduced(told: Told) -> set[tuple[str, str]]:
    (names_records,) = summarise(read(told), 1)[1].tolist()
    found = graph(read(told), names_records=names_records)
    assert graph(locally(read(told)), names_records=names_records) == found
    return {(shorten(output), shorten(input_)) for output, input_ in found}


def shorten(name: str) -> str:
    return name.removeprefix("urn:run:r:").removeprefix("urn:")


def left_locally(*told: Told) -> set[tuple[int, str, str]]:
    left = locally(read(*told))
    document, _, dependent, dependency = left.edges
    names = spell(left)
    edges = list(zip(document.tolist(), names.gather(dependent), names.gather(dependency), strict=True))
    assert len(edges) == len(set(edges))
    return set(edges)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (execution("f", "lake:a", "lake:b"), {("lake:b", "lake:a")}),
        (
            execution("f", "lake:a", "run:x run:y") + execution("g", "run:x run:y lake:c", "lake:b"),
            {("lake:b", "lake:a"), ("lake:b", "lake:c")},
        ),
        # A path is cut at a record in its middle.
        (
            execution("f", "lake:a", "lake:m") + execution("g", "lake:m", "lake:b"),
            {("lake:m", "lake:a"), ("lake:b", "lake:m")},
        ),
        # A collection depends on its members, and a collection of collections on theirs.
        (
            [
                ("hadMember", "run:c", "run:d"),
                ("hadMember", "run:d", "lake:a"),
                ("hadMember", "run:d", "lake:b"),
                *execution("f", "run:c", "lake:o"),
            ],
            {("lake:o", "lake:a"), ("lake:o", "lake:b")},
        ),
        # Dead ends: nothing generated, and generated from nothing.
        (execution("f", "lake:a", "run:x") + execution("g", "run:x", "") + execution("h", "", "lake:o"), set()),
        # Cycles end; a record told to depend on itself does.
        (
            [
                ("wasDerivedFrom", "lake:o", "run:x"),
                ("wasDerivedFrom", "run:x", "run:y"),
                ("wasDerivedFrom", "run:y", "run:x"),
                ("wasDerivedFrom", "run:y", "lake:o"),
                ("wasDerivedFrom", "run:y", "lake:i"),
            ],
            {("lake:o", "lake:o"), ("lake:o", "lake:i")},
        ),
        # An activity is contracted whatever its namespace.
        (
            [("used", "lake:job", "lake:a"), ("wasGeneratedBy", "lake:b", "lake:job")],
            {("lake:b", "lake:a")},
        ),
    ],
)
def test_records_are_kept_and_all_else_goes(told: Told, expected: set[tuple[str, str]]) -> None:
    assert reduced(told) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            execution("f", "run:a", "run:x") + execution("g", "run:x run:b", "run:o run:p"),
            {("run:o", "run:a"), ("run:o", "run:b"), ("run:p", "run:a"), ("run:p", "run:b")},
        ),
        # What was used to make nothing is no output; what was made from nothing is an input.
        (execution("f", "run:a", "run:x") + execution("g", "run:x", ""), set()),
        (execution("f", "", "run:a") + execution("g", "run:a", "run:o"), {("run:o", "run:a")}),
        # Within a cycle there is neither source nor sink.
        ([("wasDerivedFrom", "run:a", "run:b"), ("wasDerivedFrom", "run:b", "run:a")], set()),
        (execution("f", "run:a", "run:a"), set()),
    ],
)
def test_without_records_sources_and_sinks_are_kept(told: Told, expected: set[tuple[str, str]]) -> None:
    assert reduced(told) == {(a.removeprefix("run:"), b.removeprefix("run:")) for a, b in expected}


def test_a_record_that_was_only_read_still_decides_that_the_lake_counts() -> None:
    told = execution("f", "lake:a", "") + execution("g", "run:a", "run:b")
    assert reduced(told) == set()


@pytest.mark.parametrize(
    ("used", "generated", "after"),
    [
        ("lake:a", "run:x run:y run:z", 3),
        ("lake:a lake:b", "run:x run:y", 4),
        ("lake:a lake:b", "run:x run:y run:z", 5),
    ],
)
def test_an_activity_goes_locally_only_where_that_makes_no_more_edges(used: str, generated: str, after: int) -> None:
    local = left_locally(execution("f", used, generated))
    assert len(local) == after
    assert any("urn:run:r:f" in edge for edge in local) == (after == 5)


def test_what_led_nowhere_is_gone_locally_unless_it_tells_structure() -> None:
    assert left_locally(execution("f", "lake:a", "")) == set()
    assert left_locally(execution("f", "", "lake:a")) == set()
    assert len(left_locally(execution("f", "run:a", ""))) == 1


def test_an_id_that_stands_for_both_an_activity_and_an_entity_stays() -> None:
    told: Told = [
        *execution("f", "lake:a", "lake:b"),
        ("used", "run:g", "run:f"),
        ("wasGeneratedBy", "lake:c", "run:g"),
    ]
    assert reduced(told) == {("lake:b", "lake:a"), ("lake:c", "lake:a")}


def test_a_long_chain_and_a_wide_fan_are_followed_to_the_end() -> None:
    chain: Told = [("wasDerivedFrom", f"run:{n}", f"run:{n + 1}") for n in range(1000)]
    ends: Told = [("wasDerivedFrom", "lake:o", "run:0"), ("wasDerivedFrom", "run:1000", "lake:i")]
    assert reduced(chain + ends) == {("lake:o", "lake:i")}


def test_messages_do_not_mix_locally() -> None:
    assert left_locally(execution("f", "lake:a", "lake:b"), execution("f", "lake:c", "lake:d")) == {
        (0, "urn:lake:b", "urn:lake:a"),
        (1, "urn:lake:d", "urn:lake:c"),
    }


def test_what_does_not_promise_whole_executions_only_becomes_a_set() -> None:
    told = execution("f", "lake:a", "lake:b") + execution("f", "lake:a", "lake:b")
    assert len(read(told).edges.document) == 4
    assert len(locally(read(told), whole=False).edges.document) == 2
