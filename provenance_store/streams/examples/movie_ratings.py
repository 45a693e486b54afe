"""MovieRatings (Table 2 of paper 001): movies whose mean score in a minute is above four."""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from provenance_store.streams.examples.common import BEGIN, MINUTE, SECOND, SourceEvent, chance_of, last, spread
from provenance_store.streams.functions import Content, Function, register
from provenance_store.streams.operators import Aggregate, Filter, Project
from provenance_store.streams.query import Sink, Source, StreamQuery
from provenance_store.streams.windows import Trigger

BY = ("movie",)
LEAST, MOST = 0.5, 5.0

_SOURCE = Source(name="ratings", dataset="movie-ratings", lateness=5 * SECOND)


def movie_ratings(above: float = 4.0) -> StreamQuery:
    """The movies that are liked, without who rated them and without scores that are none. All is within one movie."""
    operators = (
        Project(name="scores", input="ratings", fields=("movie", "score")),
        Filter(
            name="valid",
            input="scores",
            function=Function("movie-ratings-valid", {"least": LEAST, "most": MOST}),
        ),
        Aggregate(
            name="means",
            input="valid",
            function=Function("movie-ratings-mean"),
            window=last(MINUTE),
            trigger=Trigger("time", MINUTE),
            by=("movie",),
        ),
        Filter(
            name="liked",
            input="means",
            function=Function("compare", {"field": "mean", "comparison": ">", "value": above}),
        ),
    )
    sinks = (Sink(stream="liked", dataset="movies-liked"),)
    return spread(StreamQuery(name="movie-ratings", sources=(_SOURCE,), operators=operators, sinks=sinks), BY)


@register("movie-ratings-valid")
def _valid(rating: Content, least: float, most: float) -> bool:
    return bool(least <= rating["score"] <= most)


@register("movie-ratings-mean")
def _mean(ratings: Sequence[Content]) -> Content:
    return {"mean": sum(rating["score"] for rating in ratings) / len(ratings), "ratings": len(ratings)}


# What the first movies are given: liked; just four, a near miss; below four but for scores that are none.
PLANTED = ((4.5, 5.0), (4.0,), (3.5, 4.0, 99.0))
_ANY = tuple(half / 2 for half in range(1, 11))


def generate(count: int, seed: int, keys: int = 12) -> Iterator[SourceEvent]:
    """Ratings of `keys` movies."""
    return islice(_ratings(chance_of(seed), keys), count)


def _ratings(chance: Random, movies: int) -> Iterator[SourceEvent]:
    time = BEGIN
    while True:
        time += chance.choice((0, 0, 100, 700, 2_000))
        movie = chance.randrange(movies)
        scores = PLANTED[movie] if movie < len(PLANTED) else _ANY
        yield {"time": time, "movie": movie, "user": chance.randrange(1_000), "score": chance.choice(scores)}
