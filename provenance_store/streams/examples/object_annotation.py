"""Object Annotation (Figure 12b of paper 004): ten times a second, what a vehicle's LiDAR and two cameras found.

One query tells of bicycles that were in front of the vehicle in more than eleven frames of six seconds, the other of
pedestrians whom both cameras found within two seconds: they have crossed.
"""

from collections.abc import Iterator, Sequence
from itertools import count as numbers
from itertools import islice
from random import Random
from typing import Any, TypeAlias

from provenance_store.streams.examples.common import BEGIN, SECOND, SourceEvent, chance_of, last, spread, together
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter, Join, Operator, UserFunction
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger, Window

FRAME = SECOND // 10
# An object's id means that object for one vehicle alone.
BY = ("vehicle",)

_SOURCE = Source(name="frames", dataset="object-frames", lateness=SECOND)


def bicycles(more_than: int = 11) -> StreamQuery:
    """Bicycles in front of a vehicle for more than so many frames. All is within one vehicle."""
    operators = (
        _objects("lidar"),
        Filter(
            name="in-front",
            input="lidar-objects",
            function=Function("object-annotation-in-front", {"type": "bicycle", "reach": 30, "width": 2}),
        ),
        Aggregate(
            name="seen",
            input="in-front",
            function=Function("object-annotation-frames"),
            window=last(6 * SECOND),
            trigger=Trigger("time", SECOND),
            by=("vehicle", "object"),
        ),
        Filter(
            name="bicycles",
            input="seen",
            function=Function("compare", {"field": "frames", "comparison": ">", "value": more_than}),
        ),
    )
    return _query("object-annotation-bicycles", operators, "bicycles")


def pedestrians() -> StreamQuery:
    """Pedestrians found by both cameras within two seconds. All is within one vehicle."""
    operators = (
        _objects("left"),
        _pedestrians("left"),
        _objects("right"),
        _pedestrians("right"),
        Join(
            name="crossings",
            inputs=("left-pedestrians", "right-pedestrians"),
            windows=(Window("time", 2 * SECOND), Window("time", 2 * SECOND)),
            condition=Function("object-annotation-same"),
            function=Function("object-annotation-crossing"),
        ),
    )
    return _query("object-annotation-pedestrians", operators, "crossings")


def both() -> StreamQuery:
    """Both queries, as the paper runs them together."""
    return spread(together("object-annotation", bicycles(), pedestrians()), BY)


def _objects(sensor: str) -> UserFunction:
    """All that a sensor found, one by one."""
    function = Function("object-annotation-objects", {"sensor": sensor})
    return UserFunction(name=f"{sensor}-objects", input="frames", function=function)


def _pedestrians(camera: str) -> Filter:
    function = Function("compare", {"field": "type", "comparison": "==", "value": "pedestrian"})
    return Filter(name=f"{camera}-pedestrians", input=f"{camera}-objects", function=function)


def _query(name: str, operators: tuple[Operator, ...], stream: str) -> StreamQuery:
    sinks = (Sink(stream=stream, dataset=f"object-{stream}"),)
    return spread(StreamQuery(name=name, sources=(_SOURCE,), operators=operators, sinks=sinks), BY)


@register("object-annotation-objects")
def _found(frames: Sequence[Content], sensor: str) -> list[Content]:
    (frame,) = frames
    return [{"vehicle": frame["vehicle"], "time": frame["time"], **found} for found in frame[sensor]]


@register("object-annotation-in-front")
def _in_front(found: Content, type: str, reach: float, width: float) -> bool:  # noqa: A002 - as the field is called
    return bool(found["type"] == type and 0 < found["x"] <= reach and abs(found["y"]) <= width)


@register("object-annotation-frames")
def _frames(found: Sequence[Content]) -> Content:
    return {"frames": len({one["time"] for one in found}), "until": found[-1]["time"]}


@register("object-annotation-same")
def _same(left: Content, right: Content) -> bool:
    return bool(left["vehicle"] == right["vehicle"] and left["object"] == right["object"])


@register("object-annotation-crossing")
def _crossing(left: Content, right: Content) -> Content:
    return {"vehicle": left["vehicle"], "object": left["object"], "left": left["time"], "right": right["time"]}


_Found: TypeAlias = dict[str, Any]

# What is planted: every vehicle meets one of each, scene after scene, in this order.
AHEAD = ("bicycle in front", "eleven frames", "bicycle beside", "car in front")
BESIDE = ("crossing", "two seconds later", "one camera", "bicycle crossing")
SCENE = 25


def _ahead(kind: str, at: int, number: int) -> list[_Found]:
    """What the LiDAR finds in a scene's frame."""
    long = 11 if kind == "eleven frames" else 18
    type_ = "car" if kind == "car in front" else "bicycle"
    y = 6.0 if kind == "bicycle beside" else 0.5
    return [{"object": number, "type": type_, "x": 8.0 + at / 10, "y": y}] if at < long else []


def _beside(kind: str, at: int, number: int, camera: str) -> list[_Found]:
    """What a camera finds in a scene's frame."""
    first = {"two seconds later": 20, "one camera": SCENE}.get(kind, 9) if camera == "right" else 0
    long = 1 if kind == "two seconds later" else 3
    found = {"object": number, "type": "bicycle" if kind == "bicycle crossing" else "pedestrian", "x": 5.0}
    return [found | {"y": 2.0 if camera == "right" else -2.0}] if first <= at < first + long else []


def generate(count: int, seed: int, keys: int = 3) -> Iterator[SourceEvent]:
    """Frames of `keys` vehicles."""
    return islice(_generate(chance_of(seed), keys), count)


def _generate(chance: Random, vehicles: int) -> Iterator[SourceEvent]:
    # Some vehicles begin in the same millisecond.
    phases = sorted(chance.randrange(0, FRAME, 20) for _ in range(vehicles))
    for frame in numbers():
        scene, at = divmod(frame, SCENE)
        ahead, beside = AHEAD[scene % len(AHEAD)], BESIDE[scene % len(BESIDE)]
        for vehicle, phase in enumerate(phases):
            others = [
                {"object": 1_000_000 + n, "type": "car", "x": chance.uniform(-40, 40), "y": chance.uniform(3, 9)}
                for n in range(chance.randrange(3))
            ]
            yield {
                "time": BEGIN + frame * FRAME + phase,
                "vehicle": vehicle,
                "lidar": _ahead(ahead, at, 2 * scene) + others,
                "left": _beside(beside, at, 2 * scene + 1, "left"),
                "right": _beside(beside, at, 2 * scene + 1, "right"),
            }
