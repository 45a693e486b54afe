"""Replay: events made again from the contents of first inputs alone (Figure 5 of paper 000).

Only what the events asked for may have been made from is taken up, and each operator is called on the windows that it
had then, so every event comes back with its key. What an operator really took is seen on the way: a replay tells the
true ancestors where keys alone do not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from provenance_store.errors import InputError
from provenance_store.streams.event import Event, EventKey
from provenance_store.streams.functions import Content
from provenance_store.streams.inference import Inference, Step
from provenance_store.streams.keys import NONE, Keys, Numbers, spread_out
from provenance_store.streams.making import Made, Make, maker

# Contents of a source's events at places, in their order.
Contents: TypeAlias = Callable[[str, Numbers], Sequence[Content]]
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Of every stream on the way, the contents by place; and of each event, the places of those it was made from."""

    inference: Inference
    contents: dict[str, dict[int, Content]] = field(default_factory=dict)
    parents: dict[Place, list[Place]] = field(default_factory=dict)

    def events(self, stream: str) -> list[Event]:
        """What came back of a stream."""
        places = sorted(self.contents[stream])
        keys = self.inference.keys(stream).take(np.array(places, np.int64)).rows()
        return [Event(key, self.contents[stream][place]) for key, place in zip(keys, places, strict=True)]

    def table(self) -> list[tuple[int, str, list[Event]]]:
        """The replay table: a row for each stream in the order of making, first inputs first."""
        return [(at, stream, self.events(stream)) for at, stream in enumerate(self.contents, start=1)]

    def ancestors(self, stream: str, place: int) -> set[Place]:
        """The events of sources that an event was truly made from."""
        found, seen, left = set(), {(stream, place)}, [(stream, place)]
        while left:
            one = left.pop()
            if one[0] not in self.inference.steps:
                found.add(one)
                continue
            new = [parent for parent in self.parents[one] if parent not in seen]
            seen.update(new)
            left += new
        return found

    def differences(self, recorded: Mapping[EventKey, Content]) -> list[EventKey]:
        """The keys of recorded events whose content came back as another, or not at all."""
        again = {event.key: event.content for stream in self.contents for event in self.events(stream)}
        return [key for key, content in recorded.items() if key not in again or again[key] != content]


def replay(inference: Inference, contents: Contents, stream: str, places: Numbers) -> Replayed:
    """Make events of a stream again, and all on the way to them."""
    needed = _needed(inference, stream, places)
    replayed = Replayed(inference)
    for source in inference.query.sources:
        if source.name in needed:
            at = needed[source.name]
            replayed.contents[source.name] = dict(zip(at.tolist(), contents(source.name, at), strict=True))
    for name, step in inference.steps.items():
        if name in needed:
            _Remaking(step, replayed).run(needed[name])
    return replayed


def _needed(inference: Inference, stream: str, places: Numbers) -> dict[str, Numbers]:
    """Of each stream, the places whose contents the replay will look at."""
    needed: dict[str, Numbers] = {stream: np.unique(places)}
    for name, step in reversed(inference.steps.items()):
        if name in needed:
            for read, more in zip(step.one.inputs, _inputs(step, needed[name]), strict=True):
                needed[read] = np.union1d(needed.get(read, NONE), more)
    return needed


def _inputs(step: Step, places: Numbers) -> list[Numbers]:
    if step.rule.makes is None and not step.rule.keeps_number:
        # Which of a moment's firings made an event is seen only where all of them are made again.
        begin, end = _moments(step, places)
        _, fired = spread_out(begin, end)
        spans = zip(step.firings.first, step.firings.last, strict=True)
        return [np.unique(spread_out(first[fired], last[fired])[1]) for first, last in spans]
    return [np.unique(spread_out(span.first, span.last)[1]) for span in step.spans(places)]


def _moments(step: Step, places: Numbers) -> tuple[Numbers, Numbers]:
    times = np.unique(step.made.triggered[places])
    fired = step.firings.times
    return np.searchsorted(fired, times), np.searchsorted(fired, times, side="right") - 1


class _Remaking:
    """One operator at work again."""

    def __init__(self, step: Step, replayed: Replayed) -> None:
        self._step = step
        self._make: Make = maker(step.one)
        self._replayed = replayed
        self._read = [replayed.contents.get(name, {}) for name in step.one.inputs]
        self._made: dict[int, Content] = {}
        replayed.contents[step.one.name] = self._made

    def run(self, places: Numbers) -> None:
        """Make the events at these places."""
        step = self._step
        if step.rule.makes is None and not step.rule.keeps_number:
            for begin, end in zip(*(bounds.tolist() for bounds in _moments(step, places)), strict=True):
                self._make_moment(begin, end)
            return
        spans = step.spans(places)
        if step.rule.from_ == "one" or step.rule.keeps_number:
            for at, place in enumerate(places.tolist()):
                windows = [[int(span.first[at])] if span.first[at] <= span.last[at] else [] for span in spans]
                again = self._fire(windows)
                if len(again) != 1:
                    raise self._contradiction(place)
                self._keep(place, again[0], windows)
            return
        asked = set(places.tolist())
        for firing in np.unique(np.searchsorted(step.ends, places, side="right")).tolist():
            windows = self._windows(firing)
            for place, made in enumerate(self._fire(windows), start=int(step.begins[firing])):
                if place in asked:
                    self._keep(place, made, windows)

    def _make_moment(self, begin: int, end: int) -> None:
        """All that was made at one moment: together the firings must make as much as there are keys of it."""
        step = self._step
        time = step.firings.times[begin]
        triggered = step.made.triggered
        place, behind = int(np.searchsorted(triggered, time)), int(np.searchsorted(triggered, time, side="right"))
        for firing in range(begin, end + 1):
            windows = self._windows(firing)
            for made in self._fire(windows):
                if place == behind and behind < len(step.made):
                    raise self._contradiction(place)
                if place < behind:
                    self._keep(place, made, windows)
                place += 1
        if place < behind:
            raise self._contradiction(place)

    def _windows(self, firing: int) -> list[list[int]]:
        firings = self._step.firings
        return [
            list(range(int(first[firing]), int(last[firing]) + 1))
            for first, last in zip(firings.first, firings.last, strict=True)
        ]

    def _fire(self, windows: list[list[int]]) -> list[Made]:
        contents: list[list[Any]] = [
            [read[place] for place in window] for read, window in zip(self._read, windows, strict=True)
        ]
        if self._step.rule.fires == "merge":
            contents = [window for window in contents if window]
        return list(self._make(contents))

    def _keep(self, place: int, made: Made, windows: list[list[int]]) -> None:
        self._made[place] = made.content
        inputs = self._step.one.inputs
        if self._step.rule.fires == "merge":
            at = next(number for number, window in enumerate(windows) if window)
            parents = [(inputs[at], windows[at][0])]
        else:
            parents = [(inputs[at], windows[at][within]) for at, within in made.places]
        self._replayed.parents[self._step.one.name, place] = parents

    def _contradiction(self, place: int) -> InputError:
        keys: Keys = self._step.made
        return InputError(
            f"A replay of {self._step.one.name!r} does not make what its keys tell of, at event "
            f"{int(keys.sequences[min(place, len(keys) - 1)]):,}: its function or the first inputs have changed since."
        )
