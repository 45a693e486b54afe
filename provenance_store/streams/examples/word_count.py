"""WordCount and Grep (Table 2 of paper 001), over lines of text as people send them."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from provenance_store.streams.examples.common import BEGIN, SECOND, SourceEvent, chance_of, last, spread
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter, UserFunction
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger

INTERVAL = 10 * SECOND
LISTED = ("flood", "outage", "strike")
# Grep looks at no two lines together, so any key will do.
GREP_BY = ("sender",)

_SOURCE = Source(name="lines", dataset="text-lines", lateness=2 * SECOND)
_WORDS = UserFunction(name="words", input="lines", function=Function("word-count-words"))
_WORD = re.compile(r"\w+")


def word_count() -> StreamQuery:
    """How often each word came, at regular intervals. A word is known only after its line was split: so no `by`."""
    counts = Aggregate(
        name="counts",
        input="words",
        function=Function("count"),
        window=last(INTERVAL),
        trigger=Trigger("time", INTERVAL),
        by=("word",),
    )
    sinks = (Sink(stream="counts", dataset="word-counts"),)
    return StreamQuery(name="word-count", sources=(_SOURCE,), operators=(_WORDS, counts), sinks=sinks)


def grep(words: Sequence[str] = LISTED) -> StreamQuery:
    """The words that are in a list."""
    function = Function("word-count-listed", {"words": list(words)})
    listed = Filter(name="found", input="words", function=function)
    sinks = (Sink(stream="found", dataset="words-found"),)
    return spread(StreamQuery(name="grep", sources=(_SOURCE,), operators=(_WORDS, listed), sinks=sinks), GREP_BY)


@register("word-count-words")
def _words(lines: Sequence[Content]) -> list[Content]:
    (line,) = lines
    return [{"word": word, "time": line["time"]} for word in _WORD.findall(line["text"].lower())]


@register("word-count-listed")
def _listed(word: Content, words: Sequence[str]) -> bool:
    return word["word"] in words


_COMMON = ("the", "and", "rain", "river", "train", "late", "again", "today", "power", "city", "news", "work", "night")
# What is planted: words of the list, one of them written otherwise, and near misses.
PLANTED = ("flood", "Outage!", "strike", "floods", "out age", "striker")


def generate(count: int, seed: int, keys: int = 10) -> Iterator[SourceEvent]:
    """Lines of `keys` senders."""
    return islice(_lines(chance_of(seed), keys), count)


def _lines(chance: Random, senders: int) -> Iterator[SourceEvent]:
    time = BEGIN
    while True:
        time += chance.choice((0, 0, 1, 40, 250))
        words = chance.choices(_COMMON, k=chance.randint(0, 8))
        if chance.random() < 0.2:  # noqa: PLR2004 - a share
            words.insert(chance.randint(0, len(words)), chance.choice(PLANTED))
        yield {"time": time, "sender": chance.randrange(senders), "text": " ".join(words)}
