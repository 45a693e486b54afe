"""The functions that descriptions name.

A description is data and may come from anywhere, so it never names code to import: only functions that were registered
here, by us, by a distribution's entry point `headwater.stream_functions`, or by the program that runs the query.

Those of the papers' queries are ours and lie in `examples`, which is imported when a name is not known yet: so they are
there in every process, on workers too, and whoever never names one does not load them. An entry point would need the
distribution to be installed anew before it is seen.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeAlias, TypeVar

import msgspec

from provenance_store.errors import InputError

Content: TypeAlias = Any
Call: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Call)

_FUNCTIONS: dict[str, Call] = {}
_GROUP = "headwater.stream_functions"
_EXAMPLES = "provenance_store.streams.examples"
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


class Function(msgspec.Struct, frozen=True):
    """A registered function by its name, with what it is given beside contents."""

    name: str
    arguments: dict[str, Any] = {}

    def bind(self) -> Call:
        """The function, to be called with contents alone."""
        call = find(self.name)
        arguments = self.arguments
        return (lambda *contents: call(*contents, **arguments)) if arguments else call


def register(name: str) -> Callable[[F], F]:
    """Let descriptions name this function; a name means one function for ever."""

    def keep(function: F) -> F:
        if _FUNCTIONS.setdefault(name, function) is not function:
            raise InputError(f"There is a stream function {name!r} already: choose another name.")
        return function

    return keep


def adopt(functions: Mapping[str, Call]) -> None:
    """Take over functions from another process of the same program; what is known here stays."""
    for name, function in functions.items():
        _FUNCTIONS.setdefault(name, function)


def find(name: str) -> Call:
    """The function of a name."""
    if name not in _FUNCTIONS:
        import_module(_EXAMPLES)
    if name not in _FUNCTIONS:
        for entry in entry_points(group=_GROUP, name=name):
            _FUNCTIONS[name] = entry.load()
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise InputError(
            f"There is no stream function {name!r}. There are: {', '.join(sorted(_FUNCTIONS))}; others are added with "
            f"`register`, or by an entry point in the group {_GROUP}."
        ) from None


@register("identity")
def _identity(content: Content) -> Content:
    return content


@register("ceil")
def _ceil(content: Content, field: str) -> Content:
    return content | {field: float(math.ceil(content[field]))}


@register("scale")
def _scale(content: Content, field: str, by: float) -> Content:
    return content | {field: content[field] * by}


@register("mean-of-list")
def _mean_of_list(content: Content, field: str) -> Content:
    return content | {field: sum(content[field]) / len(content[field])}


@register("compare")
def _compare(content: Content, field: str, comparison: str, value: Any) -> bool:
    return bool(_COMPARISONS[comparison](content[field], value))


@register("equal")
def _equal(left: Content, right: Content, field: str) -> bool:
    return bool(left[field] == right[field])


@register("pair")
def _pair(*contents: Content) -> Content:
    return list(contents)


@register("list")
def _list(contents: Sequence[Content], field: str) -> Content:
    return {field: [content[field] for content in contents]}


@register("count")
def _count(contents: Sequence[Content]) -> Content:
    return {"count": len(contents)}


@register("sum")
def _sum(contents: Sequence[Content], field: str) -> Content:
    return {field: sum(content[field] for content in contents)}


@register("least")
def _least(contents: Sequence[Content], field: str) -> Content:
    return {field: min(content[field] for content in contents)}


@register("most")
def _most(contents: Sequence[Content], field: str) -> Content:
    return {field: max(content[field] for content in contents)}


@register("average")
def _average(contents: Sequence[Content], field: str) -> Content:
    return {field: sum(content[field] for content in contents) / len(contents)}


@register("project")
def _project(content: Content, fields: Sequence[str]) -> Content:
    return {field: content[field] for field in fields}


@register("interpolate")
def _interpolate(
    contents: Sequence[Content], field: str, place: str, points: Sequence[Sequence[float]], constant: float
) -> list[Content]:
    """The value at each point: the mean of all samples, each weighed by one over its squared distance.

    The constant keeps the weight of a sample that lies on the point finite.
    """
    made = []
    for point in points:
        weights = [1 / (constant + math.dist(content[place], point) ** 2) for content in contents]
        value = sum(w * content[field] for w, content in zip(weights, contents, strict=True)) / sum(weights)
        made.append({place: list(point), field: value})
    return made
