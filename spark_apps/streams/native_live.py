"""Live forward provenance of Spark's own operators (the paper's ANK-N): in parallel, by windows of event time alone.

Time is cut into spans of U; k(t) is the number of the one that t lies in. An element that must wait is given out at
`delay(t) = (k(t) + 2) U`. For edges, and for labels of results, t is their result's time; for the vertex of a source it
is m, the time of its first result. The source's label comes at `delay(delay(m))`, two spans later; the vertex of a
result need not wait.

The paper composes this of delays (an aggregate and a filter each), and of two aggregates and a join that forward a
source once. Here one aggregate does it all, over windows of five spans that move by one. A window gives out an element
whose least time in it lies in the span at the element's `place`, and its end is the time to do so: two spans after the
beginning of the fourth (place 3), or four after that of the second (place 1).

So each is given out once. All times of a source lie in [m, m + U], which is in the spans k(m) and k(m) + 1. Windows
that hold m have it as the least, at the place in exactly one of them. One without m begins at k(m) + 1 or later: all
that it holds of this source lies in its first span, which is no place. And a window needs to know only of what lies at
the place or in the span before, since a time at the place can have m no earlier than that. So of its five windows a
source is put into two, and all else, which has one time only, into one.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

_SPANS = 5
# Where in its window an element's least time must lie, counted in spans.
_FIRST_DELAY = 3
_SECOND_DELAY = 1


def native_live(results: DataFrame, reach: int) -> DataFrame:
    """Elements `(at timestamp, kind string, id string, input string)` of results with provenance, both streams.

    `results` has `id string, time timestamp, sources array<struct<id string, …>>` with a watermark on `time` that no
    result is later than. `reach` is U in milliseconds. Batches follow each other in the order of `at`, but for vertices
    of results, which come before; in a batch whoever wants an order sorts by `at`, then vertices, edges, labels.
    """
    vertices = results.select(
        F.col("time").alias("at"), F.lit("sink").alias("kind"), "id", F.lit(None).cast("string").alias("input")
    )
    waiting = results.select("time", F.explode(_waiting()).alias("element")).select("time", "element.*")
    return vertices.unionByName(_give_out(waiting, reach) if reach else _give_out_at_once(waiting))


def _waiting() -> Column:
    """All that a result tells but its own vertex."""
    sources = F.col("sources.id")
    output = F.col("id")
    return F.concat(
        F.array(_element("expired", output, _FIRST_DELAY)),
        F.transform(sources, lambda source: _element("edge", output, _FIRST_DELAY, source)),
        F.transform(sources, lambda source: _element("source", source, _FIRST_DELAY, repeats=True)),
        F.transform(sources, lambda source: _element("expired", source, _SECOND_DELAY, repeats=True)),
    )


def _element(kind: str, of: Column, place: int, source: Column | None = None, *, repeats: bool = False) -> Column:
    none = F.lit(None).cast("string")
    return F.struct(
        F.lit(kind).alias("kind"),
        of.alias("id"),
        (none if source is None else source).alias("input"),
        F.lit(place).alias("place"),
        F.lit(repeats).alias("repeats"),
    )


def _give_out(waiting: DataFrame, reach: int) -> DataFrame:
    span = f"{reach} milliseconds"
    placed = waiting.withColumn("window", F.window("time", f"{_SPANS * reach} milliseconds", span))
    at = _span_in_window(F.col("time"), reach)
    needed = placed.where((at == F.col("place")) | (F.col("repeats") & (at == F.col("place") - 1)))
    least = needed.groupBy("window", "kind", "id", "input", "place").agg(F.min("time").alias("least"))
    once = least.where(_span_in_window(F.col("least"), reach) == F.col("place"))
    return once.select(F.col("window.end").alias("at"), "kind", "id", "input")


def _span_in_window(time: Column, reach: int) -> Column:
    """The number of the window's span that a time lies in, from 0."""
    passed = F.unix_micros(time) - F.unix_micros(F.col("window.start"))
    return F.floor(passed / F.lit(1000 * reach))


def _give_out_at_once(waiting: DataFrame) -> DataFrame:
    """Where nothing reaches back, all results of a source have its time: repeats are all in one window of it."""
    windows = waiting.groupBy(F.window("time", "1 millisecond"), "kind", "id", "input")
    return windows.agg(F.min("time").alias("at")).select("at", "kind", "id", "input")
