import pytest

from provenance_store.errors import InputError
from provenance_store.graph.merge import RunState, Stage, decide
from provenance_store.model.account import Account


def account(generation: int) -> Account:
    fields = dict.fromkeys(
        ("messages", "bytes", "edges_in", "edges_local", "edges_out", "duplicates", "discarded", "rejected"), 0
    )
    return Account(run="r", dic="d", verdict="complete", missing={}, seconds=0.0, generation=generation, **fields)


VISIBLE = RunState(generation=1, revision=2, digest="a", revisions=2)


@pytest.mark.parametrize(
    ("state", "generation", "digest", "stage"),
    [
        (RunState(), 0, "a", Stage("new", 1)),
        (VISIBLE, 1, "a", Stage("present", 2)),
        (VISIBLE, 1, "b", Stage("new", 3)),
        (VISIBLE, 2, "a", Stage("new", 3)),
        (RunState(staged_generation=0, staged_revision=1, staged_digest="a", revisions=1), 0, "a", Stage("resumed", 1)),
        (RunState(staged_generation=0, staged_revision=1, staged_digest="a", revisions=1), 0, "b", Stage("new", 2)),
        (RunState(generation=0, revision=1, digest="a", revisions=1, unclean=True), 0, "a", Stage("present", 1, True)),
    ],
)
def test_what_a_merge_does(state, generation, digest, stage):
    assert decide(state, account(generation), digest) == stage


def test_an_older_generation_is_refused():
    with pytest.raises(InputError, match="generation 1, and this reduced graph is of the older generation 0"):
        decide(VISIBLE, account(0), "a")
