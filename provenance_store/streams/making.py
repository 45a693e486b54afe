"""What a firing makes: the contents, and of each the places in the windows that it was made from.

Reference, engine and replay all call this, so that they differ in when an operator looks at what, and never in what it
computes.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from provenance_store.errors import JobError
from provenance_store.streams.functions import Content, Function
from provenance_store.streams.operators import (
    Aggregate,
    Average,
    Filter,
    Interpolate,
    Join,
    Map,
    Operator,
    Process,
    Product,
    Project,
    Union,
    UserFunction,
)

# Of each input, the contents in its window.
Windows: TypeAlias = Sequence[Sequence[Content]]


class Made(NamedTuple):
    """A content, and the (input, place in its window) of everything that it was made from."""

    content: Content
    places: tuple[tuple[int, int], ...]


Make: TypeAlias = Callable[[Windows], Iterator[Made]]


def maker(one: Operator) -> Make:  # noqa: C901, PLR0911 - a case for each operator
    """What an operator makes from windows. A join's windows are the event that came and the other's, or the reverse."""
    match one:
        case Map():
            return _each(one.function)
        case Project():
            return _each(Function("project", {"fields": one.fields}))
        case Filter():
            return _filter(one)
        case Aggregate(by=()):
            return _whole(_single(one.function))
        case Aggregate():
            return _groups(one)
        case Average():
            return _whole(_single(Function("average", {"field": one.field})))
        case Interpolate():
            names = ("field", "place", "points", "constant")
            return _whole(Function("interpolate", {name: getattr(one, name) for name in names}).bind())
        case UserFunction():
            return _declared(one)
        case Process():
            return _remember(one)
        case Join():
            return _join(one)
        case Product() | Union():
            return _product


def _single(function: Function) -> Callable[[Sequence[Content]], list[Content]]:
    call = function.bind()
    return lambda contents: [call(contents)]


def _each(function: Function) -> Make:
    call = function.bind()
    return lambda windows: (Made(call(content), ((0, at),)) for at, content in enumerate(windows[0]))


def _filter(one: Filter) -> Make:
    call = one.function.bind()
    return lambda windows: (Made(content, ((0, at),)) for at, content in enumerate(windows[0]) if call(content))


def _whole(call: Callable[[Sequence[Content]], Sequence[Content]]) -> Make:
    def make(windows: Windows) -> Iterator[Made]:
        everything = tuple((0, at) for at in range(len(windows[0])))
        return (Made(content, everything) for content in call(windows[0]))

    return make


def _groups(one: Aggregate) -> Make:
    call = one.function.bind()

    def make(windows: Windows) -> Iterator[Made]:
        (window,) = windows
        groups: dict[tuple[Any, ...], list[int]] = {}
        for at, content in enumerate(window):
            groups.setdefault(tuple(content[field] for field in one.by), []).append(at)
        for key, places in groups.items():
            named = dict(zip(one.by, key, strict=True))
            made = call([window[at] for at in places])
            yield Made(named | made, tuple((0, at) for at in places))

    return make


def _declared(one: UserFunction) -> Make:
    call = one.function.bind()

    def make(windows: Windows) -> Iterator[Made]:
        (window,) = windows
        made = list(call(window))
        expected = len(window) if one.from_ == "one" else one.makes
        if expected is not None and len(made) != expected:
            raise JobError(
                f"The function of {one.name!r} declares that it makes {expected:,} events of {len(window):,} in its "
                f"window, and made {len(made):,}: its provenance would be wrong. Correct one of the two."
            )
        if one.from_ == "some":
            if not all(places for _, places in made):
                raise JobError(f"The function of {one.name!r} made an event from nothing: name the places it is from.")
            return iter([Made(content, tuple((0, at) for at in places)) for content, places in made])
        if one.from_ == "one":
            return iter([Made(content, ((0, at),)) for at, content in enumerate(made)])
        everything = tuple((0, at) for at in range(len(window)))
        return iter([Made(content, everything) for content in made])

    return make


def _remember(one: Process) -> Make:
    call = one.function.bind()
    memories: dict[tuple[Any, ...], Any] = {}

    def make(windows: Windows) -> Iterator[Made]:
        ((content,),) = windows
        key = tuple(content[field] for field in one.by)
        memories[key], made = call(memories.get(key), content)
        return iter([Made(content, ((0, 0),)) for content in made])

    return make


def _join(one: Join) -> Make:
    holds = one.condition.bind() if one.condition else None
    call = one.function.bind()

    def make(windows: Windows) -> Iterator[Made]:
        for (left, first), (right, second) in product(*map(enumerate, windows)):
            if holds is None or holds(first, second):
                yield Made(call(first, second), ((0, left), (1, right)))

    return make


def _product(windows: Windows) -> Iterator[Made]:
    for places in product(*(range(len(window)) for window in windows)):
        contents = [window[at] for window, at in zip(windows, places, strict=True)]
        yield Made(contents if len(contents) > 1 else contents[0], tuple(enumerate(places)))
