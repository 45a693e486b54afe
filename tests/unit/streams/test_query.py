"""What is wrong with a description is told in a sentence, before anything runs."""

from typing import Any

import pytest

from provenance_store.errors import InputError, JobError
from provenance_store.streams.engine import Engine
from provenance_store.streams.functions import Function, register
from provenance_store.streams.making import maker
from provenance_store.streams.operators import Aggregate, Join, Map, Operator, Product, Union, UserFunction
from provenance_store.streams.query import Sink, Source, StreamQuery, functions_of
from provenance_store.streams.windows import Trigger, Window

SOURCE = Source(name="x", dataset="readings")
WINDOW = Window("length", 2)


def query(*operators: Operator, **others: Any) -> StreamQuery:
    return StreamQuery(**{"name": "q", "sources": (SOURCE,), "operators": operators, **others})


def identity(name: str, read: str) -> Map:
    return Map(name=name, input=read, function=Function("identity"))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: query(identity("x", "x")), "streams are called 'x'"),
        (lambda: query(identity("y", "z")), "reads 'z', which is not there. Streams: x, y"),
        (lambda: query(identity("y", "z"), identity("z", "y")), "made from themselves"),
        (lambda: query(sources=()), "has no source"),
        (lambda: Engine(query(Map(name="y", input="x", function=Function("nobody")))), "no stream function 'nobody'"),
        (lambda: functions_of(query(Map(name="y", input="x", function=Function("nobody")))), "no stream function"),
        (lambda: query(sinks=(Sink(stream="w", dataset="d"),)), "a sink reads 'w'"),
        (lambda: query(sinks=(Sink(stream="x", dataset="d"),) * 2), "streams land in the dataset 'd'"),
        (lambda: query(sinks=(Sink(stream="x", dataset="readings"),)), "would read its own results in 'readings'"),
        (lambda: query(Union(name="y", inputs=())), "reads no stream"),
        (lambda: query(Union(name="y", inputs=("x", "x"))), "a copy of it by an identity map"),
        (lambda: query(sources=(Source(name="x", dataset="d", lateness=-1),)), "cannot be below 0"),
        (lambda: Map(name="y", input="x", function=Function("identity"), delay=-3), "3 ms before it is triggered"),
        (lambda: Product(name="y", inputs=("a", "b"), windows=(WINDOW, WINDOW), trigger=Trigger()), "trigger by time"),
        (lambda: Product(name="y", inputs=("a",), windows=(WINDOW,), trigger=Trigger("time")), "two inputs or more"),
        (
            lambda: Join(name="y", inputs=("a", "b"), windows=(Window("time", 1, "left"), WINDOW)),
            "cannot be closed left",
        ),
        (lambda: UserFunction(name="y", input="x", function=Function("identity"), makes=0), "at least one event"),
        (
            lambda: UserFunction(name="y", input="x", function=Function("identity"), makes=2, from_="one"),
            "leave out `makes`",
        ),
        (lambda: Window("time", 0), "holds nothing"),
        (lambda: Window("length", 2, "both"), "mean nothing"),
        (lambda: Trigger("time", 0), "at least 1"),
        (lambda: Trigger("time", 5, 5), "up to 4"),
    ],
)
def test_a_mistake_is_told(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"name": "q"}', b'{"name": "q", "sources": []}'])
def test_json_that_is_no_query_is_told(text: bytes) -> None:
    with pytest.raises(InputError):
        StreamQuery.from_json(text)


@register("test.three")
def _three(window: list[Any]) -> list[Any]:
    return [1, 2, 3]


def test_a_function_that_does_not_keep_what_it_declares_is_stopped() -> None:
    declared = UserFunction(name="y", input="x", function=Function("test.three"), window=WINDOW, makes=2)
    with pytest.raises(JobError, match="declares that it makes 2 events of 2 in its window, and made 3"):
        list(maker(declared)([[0, 0]]))


def test_a_name_means_one_function_for_ever() -> None:
    with pytest.raises(InputError, match="There is a stream function 'count' already"):
        register("count")(lambda contents: contents)


def test_groups_say_what_each_was_made_from() -> None:
    one = Aggregate(name="y", input="x", function=Function("sum", {"field": "v"}), window=WINDOW, by=("g",))
    window = [{"g": "a", "v": 1}, {"g": "b", "v": 2}, {"g": "a", "v": 4}]
    assert list(maker(one)([window])) == [
        ({"g": "a", "v": 5}, ((0, 0), (0, 2))),
        ({"g": "b", "v": 2}, ((0, 1),)),
    ]
