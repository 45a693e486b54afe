"""Ancestors computed from keys and the description, for any number of events at once.

A step goes from places in a stream to places in the inputs of its operator. Where contents decided (a filter that
counts what passes, a join with a condition, groups), keys may leave several possibilities; then all of them are given,
and each is said to be `certain` or not. Nothing that contributed is ever left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from provenance_store.errors import InputError
from provenance_store.streams.firings import Firings, find_firings
from provenance_store.streams.keys import NONE, Flags, Keys, Numbers, spread_out
from provenance_store.streams.operators import Operator, is_derivable
from provenance_store.streams.query import StreamQuery


@dataclass(frozen=True, slots=True)
class Spans:
    """Of each event asked for, the first and last place in one input, and of those the ones that surely contributed."""

    first: Numbers
    last: Numbers
    certain_first: Numbers
    certain_last: Numbers


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of what was asked for, beside places in a stream, each pair once and in order."""

    rows: Numbers
    places: Numbers
    certain: Flags

    @classmethod
    def concat(cls, parts: "list[Pairs]") -> "Pairs":
        """All of them: a pair is certain that is certain by any way."""
        rows, places = (np.concatenate([NONE, *(getattr(p, name) for p in parts)]) for name in ("rows", "places"))
        certain = np.concatenate([np.empty(0, np.bool_), *(part.certain for part in parts)])
        order = np.lexsort((~certain, places, rows))
        rows, places, certain = rows[order], places[order], certain[order]
        new = np.ones(len(rows), np.bool_)
        new[1:] = (rows[1:] != rows[:-1]) | (places[1:] != places[:-1])
        return cls(rows[new], places[new], certain[new])

    def __len__(self) -> int:
        return len(self.rows)


class Step:
    """One operator, with the keys of its inputs and of what it made."""

    def __init__(self, one: Operator, inputs: list[Keys], until: int, made: Keys | None) -> None:
        self.one = one
        self.rule = one.rule
        self.inputs = inputs
        self.firings: Firings = find_firings(self.rule, inputs, until)
        self.made = self._derive(until) if made is None else made

    def _derive(self, until: int) -> Keys:
        """The keys of what it made, which follow from those of its inputs."""
        firings, rule = self.firings, self.rule
        of = np.repeat(np.arange(len(firings)), self._makes)
        times = firings.times[of] + (self.one.delay or 0)
        numbers = self.inputs[0].sequences[firings.last[0][of]] if rule.keeps_number else np.arange(1, len(of) + 1)
        return Keys(self.one.name, times, numbers, times - firings.times[of]).before(until)

    @cached_property
    def _makes(self) -> Numbers:
        """How many events each firing made, where that follows from the keys of inputs."""
        return self.firings.makes(self.rule)

    @cached_property
    def ends(self) -> Numbers:
        """Behind which place each firing's last event stands, likewise."""
        return np.cumsum(self._makes)

    @cached_property
    def begins(self) -> Numbers:
        """At which place each firing's first event stands, likewise."""
        return self.ends - self._makes

    def spans(self, places: Numbers) -> list[Spans]:
        """What events at these places were made from, by input."""
        if self.rule.makes is not None:
            return self._constant(places)
        if self.rule.keeps_number:
            at = self.inputs[0].places_of(self.made.sequences[places])
            return [Spans(at, at, at, at)]
        return self._variable(places)

    def _constant(self, places: Numbers) -> list[Spans]:
        of = np.searchsorted(self.ends, places, side="right")
        if len(of) and int(of.max()) >= len(self.firings):
            raise self._contradiction()
        spans = [(first[of], last[of]) for first, last in zip(self.firings.first, self.firings.last, strict=True)]
        if self.rule.from_ == "all":
            return [Spans(first, last, first, last) for first, last in spans]
        if self.rule.from_ == "some":
            return [_known_if_alone(first, last) for first, last in spans]
        left = places - self.begins[of]
        found = []
        for first, last in reversed(spans):  # the last input of a product changes fastest
            count = last - first + 1
            at = first + left % np.maximum(count, 1)
            left = left // np.maximum(count, 1)
            end = np.where(count > 0, at, at - 1)
            found.append(Spans(at, end, at, end))
        return found[::-1]

    def _variable(self, places: Numbers) -> list[Spans]:
        triggered = self.made.triggered
        times = triggered[places]
        begin = np.searchsorted(self.firings.times, times)
        end = np.searchsorted(self.firings.times, times, side="right") - 1
        if (begin > end).any():
            raise self._contradiction()
        if self.rule.most == 1:
            # Events leave in the order of what triggered them, so each has as many before and behind it as are known.
            begin = begin + places - np.searchsorted(triggered, times)
            end = end - (np.searchsorted(triggered, times, side="right") - 1 - places)
            if (begin > end).any():
                raise self._contradiction()
        found = []
        for first, last in zip(self.firings.first, self.firings.last, strict=True):
            if self.rule.fires == "arrival":
                found.append(_known_if_alone(*self._widest(first, last, times)))
            elif self.rule.from_ == "all":
                # What all possible firings held contributed, whichever it was.
                found.append(Spans(first[begin], last[end], first[end], last[begin]))
            else:
                found.append(_known_if_alone(first[begin], last[end]))
        return found

    def _widest(self, first: Numbers, last: Numbers, times: Numbers) -> tuple[Numbers, Numbers]:
        """Over all firings of the same moment."""
        moments, starts = np.unique(self.firings.times, return_index=True)
        of = np.searchsorted(moments, times)
        return np.minimum.reduceat(first, starts)[of], np.maximum.reduceat(last, starts)[of]

    def backward(self, pairs: Pairs) -> list[Pairs]:
        """From rows beside places in what was made, to rows beside places in each input."""
        found = []
        for spans in self.spans(pairs.places):
            of, places = spread_out(spans.first, spans.last)
            certain = (spans.certain_first[of] <= places) & (places <= spans.certain_last[of]) & pairs.certain[of]
            found.append(Pairs.concat([Pairs(pairs.rows[of], places, certain)]))
        return found

    def forward(self, at: int, pairs: Pairs) -> Pairs:
        """From rows beside places in one input, to rows beside places in what was made."""
        candidates = self._candidates(at, np.unique(pairs.places))
        spans = self.spans(candidates)[at]
        of, places = spread_out(spans.first, spans.last)
        certain = (spans.certain_first[of] <= places) & (places <= spans.certain_last[of])
        order = np.argsort(pairs.places, kind="stable")
        begin = np.searchsorted(pairs.places[order], places)
        end = np.searchsorted(pairs.places[order], places, side="right") - 1
        match, found = spread_out(begin, end)
        source = order[found]
        made = candidates[of[match]]
        return Pairs.concat([Pairs(pairs.rows[source], made, pairs.certain[source] & certain[match])])

    def _candidates(self, at: int, places: Numbers) -> Numbers:
        """Where what may have been made from places of an input stands: no more than what fired over them."""
        first, last = self.firings.first[at], self.firings.last[at]
        # Among firings that the input's own events triggered, and among the others, windows only move on.
        own = np.zeros(len(first), np.bool_)
        if self.rule.fires == "arrival":
            own = first == last
        fired = []
        for numbers in (np.flatnonzero(own), np.flatnonzero(~own & (first <= last))):
            begin = np.searchsorted(last[numbers], places)
            end = np.searchsorted(first[numbers], places, side="right") - 1
            fired.append(numbers[spread_out(begin, end)[1]])
        firings = np.unique(np.concatenate(fired))
        if self.rule.makes is not None:
            made = spread_out(self.begins[firings], self.ends[firings] - 1)[1]
        else:
            times = np.unique(self.firings.times[firings])
            triggered = self.made.triggered
            begin, end = np.searchsorted(triggered, times), np.searchsorted(triggered, times, side="right") - 1
            made = spread_out(begin, end)[1]
        return made[made < len(self.made)]

    def _contradiction(self) -> InputError:
        return InputError(
            f"The assertions of {self.one.name!r} do not fit those of {', '.join(self.one.inputs)}: they are of "
            "another execution, or some are missing."
        )


class Inference:
    """A query with the keys of its sources, and of those streams whose keys do not follow from others'."""

    def __init__(self, query: StreamQuery, stored: Mapping[str, Keys], until: int) -> None:
        self.query = query
        self.until = until
        self._keys = {source.name: _stored(stored, source.name).before(until) for source in query.sources}
        self.steps: dict[str, Step] = {}
        for one in query.ordered():
            made = stored.get(one.name) if is_derivable(one) else _stored(stored, one.name).before(until)
            step = Step(one, [self._keys[name] for name in one.inputs], until, made)
            self.steps[one.name] = step
            self._keys[one.name] = step.made

    def keys(self, stream: str) -> Keys:
        """The keys of a stream's events."""
        return self._keys[stream]

    def backward(self, stream: str, places: Numbers) -> dict[str, Pairs]:
        """Of each source, what the events at these places were made from; rows count the places that were asked for."""
        found = self.trace(stream, places)
        return {source.name: found[source.name] for source in self.query.sources if source.name in found}

    def trace(self, stream: str, places: Numbers) -> dict[str, Pairs]:
        """The same, of every stream on the way."""
        asked = Pairs(np.arange(len(places)), np.asarray(places, np.int64), np.ones(len(places), np.bool_))
        parts: dict[str, list[Pairs]] = {stream: [asked]}
        found: dict[str, Pairs] = {}
        for step in reversed(self.steps.values()):
            if step.one.name in parts:
                pairs = found[step.one.name] = Pairs.concat(parts.pop(step.one.name))
                for name, more in zip(step.one.inputs, step.backward(pairs), strict=True):
                    parts.setdefault(name, []).append(more)
        return found | {name: Pairs.concat(more) for name, more in parts.items()}

    def forward(self, source: str, places: Numbers) -> dict[str, Pairs]:
        """Of each stream, what was made from the events at these places."""
        asked = Pairs(np.arange(len(places)), np.asarray(places, np.int64), np.ones(len(places), np.bool_))
        found = {source: asked}
        for name, step in self.steps.items():
            parts = [step.forward(at, found[read]) for at, read in enumerate(step.one.inputs) if read in found]
            if parts:
                found[name] = Pairs.concat(parts)
        return found


def accuracy(found: Mapping[str, Pairs], rows: int) -> list[float]:
    """Of each row, the least share of its ancestors in all sources that are true.

    Of what has any, one at least is, even where keys do not tell which.
    """
    many, sure = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for pairs in found.values():
        many += np.bincount(pairs.rows, minlength=rows)
        sure += np.bincount(pairs.rows[pairs.certain], minlength=rows)
    sure = np.maximum(sure, np.minimum(many, 1))
    shares: list[float] = np.divide(sure, many, out=np.ones(rows), where=many > 0).tolist()
    return shares


def _known_if_alone(first: Numbers, last: Numbers) -> Spans:
    """At least one of the span contributed; where there is only one, that did."""
    return Spans(first, last, first, np.where(first == last, last, first - 1))


def _stored(stored: Mapping[str, Keys], stream: str) -> Keys:
    try:
        return stored[stream]
    except KeyError:
        raise InputError(f"There are no assertions of stream {stream!r}, and they do not follow from others.") from None
