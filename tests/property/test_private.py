"""Groups contracted by themselves come, together, to what the whole comes to."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.document import write_document
from provenance_store.model.message import Headers, Message
from provenance_store.reduction.hashed import contract_hashed
from provenance_store.reduction.local import reduce_locally
from provenance_store.reduction.private import compare, contract_group, cut, survey
from provenance_store.reduction.schemas import DERIVED, HASHED_EDGE_SCHEMA
from tests.property.test_reduction import Told, closure, flat, reduce_in_order, rename, steps


def local_tables(batches: list[list[Told]], *, whole: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    messages = [
        Message.of(Headers("r", "dic", f"a{number}", 0), write_document("r", batch))
        if whole
        else Message({}, write_document("r", batch))
        for number, batch in enumerate(batches)
    ]
    local = reduce_locally(messages, range(len(messages)), every_name=True)
    return local.edges(), local.names()


def unmade_of(told: list[Told]) -> set[str]:
    """What is used, derived from or a member, and neither in the lake nor told to come from anything."""
    made = {dependent for _, dependent, _ in told}
    activities = {a for relation, a, _ in told if relation == "used"}
    activities |= {a for relation, _, a in told if relation == "wasGeneratedBy"}
    needed = {dependency for relation, _, dependency in told if relation != "wasGeneratedBy"}
    return {item for item in needed - made - activities if not item.startswith("lake:")}


@given(st.lists(steps(lake=True, max_size=5), min_size=1, max_size=8), st.booleans(), st.data())
def test_groups_come_to_what_the_whole_comes_to(
    drawn: list[list[list[Told]]], whole: bool, data: st.DataObject
) -> None:
    batches = [flat(rename(batch, str(number))) for number, batch in enumerate(drawn)]
    edges, names = local_tables(batches, whole=whole)
    number = data.draw(st.integers(1, 5))
    of_message = [data.draw(st.integers(0, number - 1)) for _ in batches]
    groups = [
        edges.filter(pl.col("message").is_in([m for m, g in enumerate(of_message) if g == n])) for n in range(number)
    ]
    surveys = [survey(group) for group in groups]
    ranges = data.draw(st.integers(1, 4))
    compared = [compare([one[cut(one["item"], n, ranges)] for one in surveys]) for n in range(ranges)]
    links = []
    for n, group in enumerate(groups):
        shared = pl.concat([one.shared.filter(pl.col("group") == n)["item"] for one in compared])
        assert shared.is_sorted()
        links.append(contract_group(group, shared))
        assert links[-1].height <= group.height
    left = pl.concat(links).with_columns(message=pl.lit(0, pl.Int64), relation=pl.lit(DERIVED, pl.Int8))
    graph, _ = contract_hashed(left.select(HASHED_EDGE_SCHEMA.names()), names, names_records=True)
    told = flat(batches)
    assert graph.equals(contract_hashed(edges, names, names_records=True)[0])
    assert sum(one.unmade for one in compared) == len(unmade_of(told))


@given(st.lists(steps(lake=True, max_size=5), min_size=1, max_size=6))
def test_an_account_counts_what_nobody_made(drawn: list[list[list[Told]]]) -> None:
    batches = [flat(rename(batch, str(number))) for number, batch in enumerate(drawn)]
    messages = [
        Message.of(Headers("r", "dic", f"a{number}", 0), write_document("r", batch))
        for number, batch in enumerate(batches)
    ]
    told = flat(batches)
    (reduced,) = reduce_in_order(messages)
    assert set(reduced.graph.iter_rows()) == closure("r", told)
    names_records = any(end.startswith("lake:") for _, *ends in told for end in ends)
    assert reduced.account.unmade == (len(unmade_of(told)) if names_records else 0)
