"""Groups contracted by themselves come, together, to what the whole comes to."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.document import write_document
from provenance_store.model.message import Headers, Message
from provenance_store.reduction.grouped import (
    CROSSING_SCHEMA,
    Group,
    begin,
    compare,
    cut,
    go_on,
    names_to_send,
    survey,
)
from provenance_store.reduction.hashed import contract_hashed, spell_hashed
from provenance_store.reduction.local import reduce_locally
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
    if collide := data.draw(st.booleans()):
        halves = pl.col("^(dependent_|dependency_|)hi$") % 3
        edges, names = edges.with_columns(halves), names.with_columns(halves)
    number = data.draw(st.integers(1, 5))
    of_message = [data.draw(st.integers(0, number - 1)) for _ in batches]
    parted = [
        edges.filter(pl.col("message").is_in([m for m, g in enumerate(of_message) if g == n])) for n in range(number)
    ]
    surveys = [survey(part) for part in parted]
    ranges = data.draw(st.integers(1, 4))
    compared = [compare([one[cut(one["item"], n, ranges)] for one in surveys]) for n in range(ranges)]
    routes = pl.concat([one.routes for one in compared])
    groups = [Group.of(part, routes.filter(pl.col("group") == n)) for n, part in enumerate(parted)]
    known = [named_in(part, names) for part in parted]
    graph = contract_in_groups(groups, known)
    told = flat(batches)
    assert graph.is_unique().all()
    assert graph.sort("input", "output").equals(contract_hashed(edges, names, names_records=True)[0])
    if not collide:
        assert sum(one.unmade for one in compared) == len(unmade_of(told))


def contract_in_groups(groups: list[Group], known: list[pl.DataFrame]) -> pl.DataFrame:
    """Round after round, each group knowing only its own names and those that were sent to it."""
    reached = [begin(group) for group in groups]
    found = [one.found for one in reached]
    seen = [pl.DataFrame(schema=CROSSING_SCHEMA) for _ in groups]
    while any(one.crossings.height for one in reached):
        sent = [(one.crossings, names_to_send(one.crossings, names)) for one, names in zip(reached, known, strict=True)]
        reached = []
        for n, group in enumerate(groups):
            came = pl.concat([crossings.filter(pl.col("to") == n) for crossings, _ in sent]).unique()
            came = came.join(seen[n], on=came.columns, how="anti")
            seen[n] = pl.concat([seen[n], came])
            known[n] = pl.concat([known[n], *(names.filter(pl.col("to") == n).drop("to") for _, names in sent)])
            reached.append(go_on(group, came))
            found[n] = pl.concat([found[n], reached[-1].found])
    return pl.concat([spell_hashed(pairs, names) for pairs, names in zip(found, known, strict=True)])


def named_in(edges: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    ends = pl.concat(edges.select(hi=f"{end}_hi", lo=f"{end}_lo") for end in ("dependent", "dependency")).unique()
    return names.join(ends, on=["hi", "lo"], how="semi")


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
