"""The operators of stream queries, each with the properties that its provenance follows from.

Whatever an operator computes, provenance needs of it only when it fires, which windows it then looks at, how many
events a firing makes, and which events of the windows each of these depends on. `Rule` says that; nothing in this
package that infers looks at the kind of an operator.
"""

from typing import Literal, TypeAlias

import msgspec

from provenance_store.errors import InputError
from provenance_store.streams.functions import Function
from provenance_store.streams.windows import Trigger, Window

# How long making an event takes, in milliseconds. None: it differs, and only the event's key tells.
Delay: TypeAlias = int | None

EACH_EVENT = Trigger()
THE_EVENT = Window("length", 1)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What provenance needs to know of an operator.

    `fires`: `trigger` on its own schedule, `arrival` at every event of two inputs against the window over the other,
    `merge` at every event of any input.
    `makes`: how many events a firing makes. A number, `window` one for each event in the window, `product` one for each
    combination of the windows, `pairs` one for each event in the other's window, or None where only the contents tell;
    then `most` is their greatest number, if there is one.
    `from_`: what one of them depends on. `all` of the windows, `one` event of each window in the order of making, or
    `some`.
    `keeps_number`: whether an event has the number of the one that it was made from.
    """

    fires: Literal["trigger", "arrival", "merge"] = "trigger"
    windows: tuple[Window, ...] = (THE_EVENT,)
    trigger: Trigger = EACH_EVENT
    makes: int | Literal["window", "product", "pairs"] | None = 1
    most: int | None = None
    from_: Literal["all", "one", "some"] = "all"
    keeps_number: bool = False


class _Operator(msgspec.Struct, frozen=True, kw_only=True, tag_field="operation"):
    """What all operators have: the name of the stream that they make, and how long making an event takes."""

    name: str
    delay: Delay = 0

    def __post_init__(self) -> None:
        if self.delay is not None and self.delay < 0:
            raise InputError(f"{self.name!r} cannot make events {-self.delay} ms before it is triggered.")


class _OfOne(_Operator, frozen=True, kw_only=True):
    """What operators over one stream have."""

    input: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return (self.input,)


class Map(_OfOne, frozen=True, kw_only=True, tag="map"):
    """Applies a function to each event."""

    function: Function

    @property
    def rule(self) -> Rule:
        """One event from each."""
        return Rule(keeps_number=True)


class Filter(_OfOne, frozen=True, kw_only=True, tag="filter"):
    """Lets those events pass whose content satisfies a function.

    An event that passes keeps its number, by which it is known even among others of the same millisecond. With
    `numbering` set to `own`, events that pass are counted, as paper 000 has it, and of those only times tell.
    """

    function: Function
    numbering: Literal["input", "own"] = "input"

    @property
    def rule(self) -> Rule:
        """One event or none from each."""
        return Rule(makes=None, most=1, keeps_number=self.numbering == "input")


class Project(_OfOne, frozen=True, kw_only=True, tag="project"):
    """Keeps some fields: of each event, or at each firing of all events in a window, one after the other."""

    fields: tuple[str, ...]
    window: Window = THE_EVENT
    trigger: Trigger = EACH_EVENT

    @property
    def rule(self) -> Rule:
        """Each event from one."""
        return Rule(windows=(self.window,), trigger=self.trigger, makes="window", from_="one")


class Aggregate(_OfOne, frozen=True, kw_only=True, tag="aggregate"):
    """Makes one event from all in a window, or one for each group of those that agree in the fields `by`."""

    function: Function
    window: Window
    trigger: Trigger = EACH_EVENT
    by: tuple[str, ...] = ()

    @property
    def rule(self) -> Rule:
        """One event from the window; of groups, only the contents tell."""
        if self.by:
            return Rule(windows=(self.window,), trigger=self.trigger, makes=None, from_="some")
        return Rule(windows=(self.window,), trigger=self.trigger)


class Average(_OfOne, frozen=True, kw_only=True, tag="average"):
    """The mean of a field over a window."""

    field: str
    window: Window
    trigger: Trigger = EACH_EVENT

    @property
    def rule(self) -> Rule:
        """One event from the window."""
        return Rule(windows=(self.window,), trigger=self.trigger)


class Interpolate(_OfOne, frozen=True, kw_only=True, tag="interpolation"):
    """Estimates a field at points, from the samples in a window by their distance: one event a point."""

    field: str
    place: str
    points: tuple[tuple[float, ...], ...]
    window: Window
    trigger: Trigger = EACH_EVENT
    constant: float = 1e-9

    @property
    def rule(self) -> Rule:
        """As many events as points, each from the whole window."""
        return Rule(windows=(self.window,), trigger=self.trigger, makes=len(self.points))


class Product(_Operator, frozen=True, kw_only=True, tag="product"):
    """The Cartesian product of windows over several streams, at times."""

    inputs: tuple[str, ...]
    windows: tuple[Window, ...]
    trigger: Trigger

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.inputs) < 2 or len(self.inputs) != len(self.windows):  # noqa: PLR2004 - of one stream it is the stream
            raise InputError(f"The product {self.name!r} needs two inputs or more, and as many windows as inputs.")
        if self.trigger.kind != "time":
            raise InputError(
                f"The product {self.name!r} looks at several streams, which share only time: trigger by time."
            )

    @property
    def rule(self) -> Rule:
        """One event for each combination."""
        return Rule(windows=self.windows, trigger=self.trigger, makes="product", from_="one")


class Join(_Operator, frozen=True, kw_only=True, tag="join"):
    """Pairs each event that comes with those in the window over the other stream, where a condition holds."""

    inputs: tuple[str, str]
    windows: tuple[Window, Window]
    condition: Function | None = None
    function: Function = Function("pair")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.inputs) != 2 or len(self.windows) != 2:  # noqa: PLR2004 - a join has two sides
            raise InputError(f"The join {self.name!r} needs two inputs and two windows.")
        if "left" in {window.closed for window in self.windows}:
            raise InputError(
                f"The join {self.name!r} pairs events as they come, up to now: its windows cannot be closed left."
            )

    @property
    def rule(self) -> Rule:
        """A pair for each event of the other's window; with a condition only the contents tell of which."""
        if self.condition is None:
            return Rule(fires="arrival", windows=self.windows, makes="pairs", from_="one")
        return Rule(fires="arrival", windows=self.windows, makes=None, from_="some")


class Union(_Operator, frozen=True, kw_only=True, tag="union"):
    """All events of several streams in the order of time; of two at one time, that of the earlier input first."""

    inputs: tuple[str, ...]

    @property
    def rule(self) -> Rule:
        """One event from one."""
        return Rule(fires="merge", from_="one")


class UserFunction(_OfOne, frozen=True, kw_only=True, tag="user"):
    """A function of a window that returns a list of contents, with its properties as its author declares them.

    `makes` is how many it returns, or None where that differs. `from_`: each depends on `all` of the window; or they
    are as many as the window has events, and each depends on the `one` at its place; or on `some`, and then the
    function returns pairs, of a content and the places in the window that it was made from.
    """

    function: Function
    window: Window = THE_EVENT
    trigger: Trigger = EACH_EVENT
    makes: int | None = None
    from_: Literal["all", "one", "some"] = msgspec.field(default="all", name="from")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.makes is not None and self.makes < 1:
            raise InputError(f"The function of {self.name!r} must make at least one event a firing, not {self.makes}.")
        if self.makes is not None and self.from_ == "one":
            raise InputError(
                f'{self.name!r} declares "one": then it makes an event for each in the window, so leave out `makes`.'
            )

    @property
    def rule(self) -> Rule:
        """As declared."""
        makes = "window" if self.from_ == "one" else self.makes
        return Rule(windows=(self.window,), trigger=self.trigger, makes=makes, from_=self.from_)  # type: ignore[arg-type]


class Process(_OfOne, frozen=True, kw_only=True, tag="process"):
    """A function that remembers: of each event and what it remembers of those before, any number of events.

    The function takes what it remembers, None at first, and a content; it returns what it will remember, as JSON can
    have it, and a list of contents. There is one memory for each value of the fields `by`.
    """

    function: Function
    by: tuple[str, ...] = ()

    @property
    def rule(self) -> Rule:
        """Any number of events from each; what is remembered is no ancestor."""
        return Rule(makes=None)


Operator: TypeAlias = (
    Map | Filter | Project | Aggregate | Average | Interpolate | Product | Join | Union | UserFunction | Process
)


def is_derivable(one: Operator) -> bool:
    """Whether the keys of what it makes follow from the keys of what it reads, so that nobody has to store them."""
    return one.rule.makes is not None and one.delay is not None
