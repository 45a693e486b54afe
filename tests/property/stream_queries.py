"""Random stream queries and random arrivals of their sources: out of order, delayed, late, many at one time."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from provenance_store.streams.engine import Arrival, Engine
from provenance_store.streams.event import Event
from provenance_store.streams.functions import Function, register
from provenance_store.streams.operators import (
    Aggregate,
    Average,
    Filter,
    Interpolate,
    Join,
    Map,
    Operator,
    Product,
    Project,
    Union,
    UserFunction,
)
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.reference import Streams, execute
from provenance_store.streams.windows import Trigger, Window

KINDS = (
    "map",
    "filter",
    "project",
    "aggregate",
    "grouped",
    "average",
    "interpolate",
    "product",
    "join",
    "union",
    "user",
)


def _number(content: Any) -> int:
    """A number that anything that comes along a random query has."""
    if isinstance(content, dict):
        return sum(_number(value) for value in content.values())
    if isinstance(content, list | tuple):
        return sum(map(_number, content))
    return round(content) % 97


@register("test.wrap")
def _wrap(content: Any) -> Any:
    return {"v": _number(content), "g": _number(content) % 3, "p": [float(_number(content) % 5)]}


@register("test.odd")
def _odd(content: Any) -> bool:
    return _number(content) % 2 == 1


@register("test.same-group")
def _same_group(left: Any, right: Any) -> bool:
    return _number(left) % 3 == _number(right) % 3


@register("test.split")
def _split(window: list[Any]) -> list[Any]:
    total = sum(map(_number, window))
    return [_wrap(total), _wrap(total + 1)]


@register("test.each")
def _each(window: list[Any]) -> list[Any]:
    return [_wrap(_number(content) + 1) for content in window]


@register("test.some")
def _some(window: list[Any]) -> list[Any]:
    return [(_wrap(content), (at,)) for at, content in enumerate(window) if _number(content) % 3]


@register("test.any-number")
def _any_number(window: list[Any]) -> list[Any]:
    total = sum(map(_number, window))
    return [_wrap(total + at) for at in range(total % 3)]


@dataclass(frozen=True)
class Case:
    """A query, its arrivals in batches with the watermark after each, and how long measured operators took."""

    query: StreamQuery
    batches: list[tuple[list[Arrival], int]]
    lags: list[int]

    def lag(self, stream: str, number: int) -> int:
        return self.lags[(number + len(stream)) % len(self.lags)]

    def engine(self, state: bytes | None = None) -> Engine:
        return Engine(self.query, state, lag=self.lag, parents=True)

    @property
    def until(self) -> int:
        return max(until for _, until in self.batches)

    def run_engine(self) -> tuple[dict[str, list[Event]], Streams]:
        """Events that took part, by source, and all that was made; the state put away after every batch."""
        sources: dict[str, list[Event]] = {source.name: [] for source in self.query.sources}
        made: Streams = {one.name: [] for one in self.query.operators}
        state: bytes | None = None
        for arrivals, until in self.batches:
            engine = self.engine(state)
            engine.add(arrivals)
            entered, streams = engine.advance(until)
            for event, _ in entered:
                sources[event.key.stream].append(event)
            for name, events in streams.items():
                made[name] += events
            state = engine.put_away()
        return sources, made

    def run_reference(self, sources: dict[str, list[Event]], until: int | None = None) -> Streams:
        return execute(self.query, sources, self.until if until is None else until, self.lag)


@st.composite
def windows(draw: st.DrawFn, *, join: bool = False) -> Window:
    kind = draw(st.sampled_from(["time", "length"]))
    if kind == "length":
        return Window("length", draw(st.integers(1, 4)), "right" if join else draw(st.sampled_from(["left", "right"])))
    return Window(
        "time",
        draw(st.integers(1, 12)),
        draw(st.sampled_from(["right", "both"] if join else ["left", "right", "both"])),
    )


@st.composite
def triggers(draw: st.DrawFn, *, time_only: bool = False) -> Trigger:
    kind = "time" if time_only else draw(st.sampled_from(["events", "time"]))
    every = draw(st.integers(1, 4 if kind == "events" else 9))
    return Trigger(kind, every, draw(st.integers(0, every - 1)))


@st.composite
def operators(  # noqa: PLR0911 - a case for each operator
    draw: st.DrawFn, name: str, streams: list[str], kinds: tuple[str, ...], *, measured: bool
) -> Operator:
    kind = draw(
        st.sampled_from([kind for kind in kinds if len(streams) > 1 or kind not in {"join", "product", "union"}])
    )
    stream = draw(st.sampled_from(streams))
    delay = draw(st.sampled_from([0, 0, 3, None] if measured else [0, 0, 3]))
    common: dict[str, Any] = {"name": name, "delay": delay}
    window, trigger = draw(windows()), draw(triggers())
    two = tuple(draw(st.permutations(streams))[:2])
    match kind:
        case "map":
            return Map(**common, input=stream, function=Function("test.wrap"))
        case "filter":
            numbering = draw(st.sampled_from(["input", "own"]))
            return Filter(**common, input=stream, function=Function("test.odd"), numbering=numbering)
        case "project":
            if draw(st.booleans()):
                return Project(**common, input=stream, fields=())
            return Project(**common, input=stream, fields=(), window=window, trigger=trigger)
        case "aggregate":
            return Aggregate(**common, input=stream, function=Function("count"), window=window, trigger=trigger)
        case "grouped" | "average" | "interpolate":
            # These look at fields, which a map in front of them makes sure of.
            return UserFunction(
                **common, input=stream, function=Function("test.some"), window=window, trigger=trigger, from_="some"
            )
        case "product":
            both = (draw(windows()), draw(windows()))
            return Product(**common, inputs=two, windows=both, trigger=draw(triggers(time_only=True)))
        case "join":
            both = (draw(windows(join=True)), draw(windows(join=True)))
            condition = draw(st.sampled_from([None, Function("test.same-group")]))
            return Join(**common, inputs=two, windows=both, condition=condition)
        case "union":
            return Union(**common, inputs=two)
        case _:
            function, makes, from_ = draw(
                st.sampled_from(
                    [
                        ("test.split", 2, "all"),
                        ("test.each", None, "one"),
                        ("test.some", None, "some"),
                        ("test.any-number", None, "all"),
                    ]
                )
            )
            return UserFunction(
                **common,
                input=stream,
                function=Function(function),
                window=window,
                trigger=trigger,
                makes=makes,
                from_=from_,
            )


def _with_fields(draw: st.DrawFn, name: str, stream: str) -> list[Operator]:
    """An operator that looks at fields, behind a map that makes them."""
    wrapped = Map(name=f"{name}w", input=stream, function=Function("test.wrap"))
    window, trigger = draw(windows()), draw(triggers())
    common: dict[str, Any] = {"name": name, "input": wrapped.name, "window": window, "trigger": trigger}
    kind = draw(st.sampled_from(["grouped", "average", "interpolate", "project"]))
    match kind:
        case "grouped":
            one: Operator = Aggregate(**common, function=Function("sum", {"field": "v"}), by=("g",))
        case "average":
            one = Average(**common, field="v")
        case "interpolate":
            one = Interpolate(**common, field="v", place="p", points=((0.5,), (2.5,)))
        case _:
            one = Project(**common, fields=("v", "g"))
    return [wrapped, one]


@st.composite
def queries(draw: st.DrawFn, *, measured: bool = True, most: int = 5) -> StreamQuery:
    sources = [f"s{at}" for at in range(draw(st.integers(1, 2)))]
    streams, made = list(sources), []
    for at in range(draw(st.integers(1, most))):
        name = f"o{at}"
        if draw(st.integers(0, 3)) == 0:
            new = _with_fields(draw, name, draw(st.sampled_from(streams)))
        else:
            new = [draw(operators(name, streams, KINDS, measured=measured))]
        made += new
        streams += [one.name for one in new]
    return StreamQuery(
        name="random",
        sources=tuple(Source(name=name, dataset=f"in-{name}") for name in sources),
        operators=tuple(draw(st.permutations(made))),
        sinks=(Sink(stream=streams[-1], dataset="out"),),
    )


@st.composite
def arrivals(draw: st.DrawFn, query: StreamQuery, most: int = 12) -> list[tuple[list[Arrival], int]]:
    batches, until, number = [], 0, 0
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(0, most))):
            source = draw(st.sampled_from(query.sources)).name
            time, delay = draw(st.integers(0, 40)), draw(st.integers(0, 5))
            number += 1
            value = draw(st.integers(0, 20))
            batch.append(Arrival(source, time, ("f", number), delay, {"v": value, "time": time}))
        until = max(until, draw(st.integers(0, 50)))
        batches.append((batch, until))
    batches.append(([], draw(st.integers(until, 80))))
    return batches


@st.composite
def cases(draw: st.DrawFn, *, measured: bool = True) -> Case:
    query = draw(queries(measured=measured))
    return Case(query, draw(arrivals(query)), draw(st.lists(st.integers(0, 6), min_size=1, max_size=5)))
