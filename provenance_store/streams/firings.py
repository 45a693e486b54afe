"""When an operator fired and what its windows then held, from the keys of its inputs alone: all firings at once.

Of each firing and each input there is the first and the last place of the window in the input. Where the first lies
behind the last the input takes no part in the firing, which happens only where streams are merged.
"""

from dataclasses import dataclass

import numpy as np

from provenance_store.streams.keys import NONE, Keys, Numbers, spread_out
from provenance_store.streams.operators import Rule
from provenance_store.streams.windows import Trigger, Window


@dataclass(frozen=True, slots=True)
class Firings:
    """The moments in order, and of each input the first and the last places in its window."""

    times: Numbers
    first: list[Numbers]
    last: list[Numbers]

    def __len__(self) -> int:
        return len(self.times)

    def counts(self) -> list[Numbers]:
        """How many events each window held."""
        return [np.maximum(last - first + 1, 0) for first, last in zip(self.first, self.last, strict=True)]

    def makes(self, rule: Rule) -> Numbers:
        """How many events each firing made, for a rule that tells."""
        if isinstance(rule.makes, int):
            return np.full(len(self), rule.makes, np.int64)
        made: Numbers = np.prod(self.counts(), axis=0, dtype=np.int64)
        return made


def find_firings(rule: Rule, inputs: list[Keys], until: int) -> Firings:
    """All firings before a time, of those that made anything."""
    inputs = [keys.before(until) for keys in inputs]
    if rule.fires != "trigger":
        found = _on_arrival(rule, inputs)
    elif rule.trigger.kind == "events":
        found = _on_count(rule.windows[0], rule.trigger, inputs[0].timestamps)
    else:
        found = _at_times(rule, inputs, until)
    if rule.fires == "merge":
        return found
    full = np.logical_and.reduce([first <= last for first, last in zip(found.first, found.last, strict=True)])
    return Firings(found.times[full], [one[full] for one in found.first], [one[full] for one in found.last])


def _on_count(window: Window, trigger: Trigger, times: Numbers) -> Firings:
    places = np.arange(len(times))
    at = places[(places + 1) % trigger.every == trigger.offset]
    moments = times[at]
    if window.kind == "length":
        return Firings(moments, [np.maximum(at - window.size + 1, 0)], [at])
    first = np.searchsorted(times, moments + window.first)
    last = at if window.last == 0 else np.searchsorted(times, moments) - 1
    return Firings(moments, [first], [last])


def _at_times(rule: Rule, inputs: list[Keys], until: int) -> Firings:
    pairs = list(zip(rule.windows, [keys.timestamps for keys in inputs], strict=True))
    moments = np.unique(np.concatenate([_moments(window, rule.trigger, times) for window, times in pairs]))
    moments = moments[moments < until]
    first, last = [], []
    for window, times in pairs:
        end = np.searchsorted(times, moments + window.last, side="right") - 1
        is_length = window.kind == "length"
        begin = np.maximum(end - window.size + 1, 0) if is_length else np.searchsorted(times, moments + window.first)
        first.append(begin)
        last.append(end)
    return Firings(moments, first, last)


def _moments(window: Window, trigger: Trigger, times: Numbers) -> Numbers:
    """The times at which a trigger fires over one input, counted in steps of the trigger, each once."""
    if not len(times):
        return NONE
    due = times - window.last
    first = -((trigger.offset - due) // trigger.every)
    last = first if window.kind == "length" else (times - window.first - trigger.offset) // trigger.every
    # Times rise, so whatever steps the events before have covered end where the last of them did.
    covered = np.concatenate([first[:1] - 1, np.maximum.accumulate(last)[:-1]])
    _, steps = spread_out(np.maximum(first, covered + 1), last)
    return steps * trigger.every + trigger.offset


def _on_arrival(rule: Rule, inputs: list[Keys]) -> Firings:
    sides = np.concatenate([np.full(len(keys), at) for at, keys in enumerate(inputs)])
    places = np.concatenate([np.arange(len(keys)) for keys in inputs])
    times = np.concatenate([keys.timestamps for keys in inputs])
    order = np.lexsort((places, sides, times))
    sides, places, times = sides[order], places[order], times[order]
    first, last = [], []
    for at, keys in enumerate(inputs):
        own = sides == at
        if rule.fires == "merge":
            first.append(np.where(own, places, 0))
            last.append(np.where(own, places, -1))
            continue
        come, window = np.cumsum(own), rule.windows[at]
        is_length = window.kind == "length"
        begin = (
            np.maximum(come - window.size, 0) if is_length else np.searchsorted(keys.timestamps, times + window.first)
        )
        first.append(np.where(own, places, begin))
        last.append(np.where(own, places, come - 1))
    return Firings(times, first, last)
