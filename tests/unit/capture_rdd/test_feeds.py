from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_apps.capture import rdd_feeds as feeds
from spark_apps.capture.rdd_writer import merge


def pull(chain: feeds.Chain, partition: Any) -> list[tuple[Any, Any]]:
    return list(feeds.AsTokened(chain)(0, iter(partition)))


def test_lines_keep_all_but_the_first_tab() -> None:
    assert pull(feeds.Chain(feeds.texts, ()), ["f0:0\ta\tb", "f0:4\t", "f1:0\t\t"]) == [
        ("f0:0", "a\tb"),
        ("f0:4", ""),
        ("f1:0", "\t"),
    ]


def test_a_join_depends_on_both_and_an_outer_join_without_match_on_the_one() -> None:
    rows = [("k", (("f0:0", 1), ("f1:0", 2))), ("k", (("f0:0", None), None)), ("k", (None, ("f1:0", None)))]
    assert pull(feeds.Chain(feeds.joined, ()), rows) == [
        (("f0:0", "f1:0"), ("k", (1, 2))),
        ("f0:0", ("k", (None, None))),
        ("f1:0", ("k", (None, None))),
    ]


def test_tokens_are_merged_flat() -> None:
    assert merge("a", "b") == ("a", "b")
    assert merge(("a", "b"), "c") == ("a", "b", "c")
    assert merge((), "c") == ("c",)
    assert merge("a", ()) == ("a",)


def repeat(value: int) -> Iterator[int]:
    """Lazy, as a generator of the user is."""
    for _ in range(value % 4):
        yield value


@given(
    st.lists(st.integers(0, 50)),
    st.lists(st.sampled_from(["map", "filter", "flatMap"]), max_size=6),
)
def test_what_comes_out_of_any_chain_has_the_token_of_what_went_in(values: list[int], names: list[str]) -> None:
    made: dict[str, feeds.Step] = {
        "map": feeds.Map(lambda v: v + 1),
        "filter": feeds.Filter(lambda v: v % 3),
        "flatMap": feeds.FlatMap(repeat),
    }
    expected = [(f"f0:{n}", v) for n, v in enumerate(values)]
    for name in names:
        if name == "map":
            expected = [(t, v + 1) for t, v in expected]
        elif name == "filter":
            expected = [(t, v) for t, v in expected if v % 3]
        else:
            expected = [(t, v) for t, v in expected for _ in range(v % 4)]
    chain = feeds.Chain(feeds.tokened, tuple(made[name] for name in names))
    assert pull(chain, [(f"f0:{n}", v) for n, v in enumerate(values)]) == expected
