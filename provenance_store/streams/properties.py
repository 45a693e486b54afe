"""The transformation properties of paper 002, for every operator: what can be told of it before anything has run."""

from math import prod
from typing import Literal, TypeAlias

import msgspec

from provenance_store.streams.operators import Operator, Rule

Many: TypeAlias = Literal["single", "multiple"]


class Properties(msgspec.Struct, frozen=True, kw_only=True):
    """Its Table 4.1, with `outputs_per_input` the number that its Definition 11 gives where the windows are full.

    That number is none where a time window may hold any number of events, and where contents decide (`variable`).
    """

    mapping: Literal["constant", "variable"]
    input_sources: Many
    contributing_sources: Literal["single", "multiple", "not applicable"]
    input_tuple_mapping: Many
    output_tuple_mapping: Many
    outputs_per_input: float | None


def properties_of(one: Operator) -> Properties:
    """The properties of an operator."""
    rule, inputs = one.rule, len(one.inputs)
    number = _outputs_per_input(rule, inputs)
    # Where no number follows, a firing may make several events, but of a filter.
    several = rule.most != 1 if number is None else number > 1
    return Properties(
        mapping="variable" if rule.makes is None else "constant",
        input_sources="multiple" if inputs > 1 else "single",
        contributing_sources=_contributing(rule, inputs),
        input_tuple_mapping="multiple" if _takes_many(rule) else "single",
        output_tuple_mapping="multiple" if several else "single",
        outputs_per_input=number,
    )


def _contributing(rule: Rule, inputs: int) -> Literal["single", "multiple", "not applicable"]:
    if inputs == 1:
        return "not applicable"
    return "single" if rule.fires == "merge" else "multiple"


def _takes_many(rule: Rule) -> bool:
    if rule.from_ == "one" or rule.fires == "arrival":
        return False
    return any(window.kind == "time" or window.size > 1 for window in rule.windows)


def _outputs_per_input(rule: Rule, inputs: int) -> float | None:
    """Definition 11: events made over events in the windows, times what each source gives to one of them."""
    if rule.makes is None or rule.fires != "trigger":
        return None if rule.fires != "merge" else 1.0
    sizes = [window.size for window in rule.windows]
    taken = 1 if rule.from_ == "one" else sizes[0]
    if any(window.kind == "time" for window in rule.windows):
        # Sizes of time windows count no events; where all events give to all that is made, they do not matter.
        return float(rule.makes) if isinstance(rule.makes, int) else (1.0 if rule.makes == "window" else None)
    made = {"window": sizes[0], "product": prod(sizes)}.get(str(rule.makes), rule.makes)
    assert isinstance(made, int)  # noqa: S101 - pairs are made on arrival only
    return made / sum(sizes) * taken * inputs
