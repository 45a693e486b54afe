"""What only shows with large numbers and many rows: places of any size, and groups beyond the table of aliases."""

from collections import defaultdict
from collections.abc import Callable
from random import Random

from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it

from provenance_store.reduction.exact import Reduced
from spark_apps.capture.dataframe import TrackedFrame
from spark_apps.capture.spark_run import SparkRun
from spark_apps.capture.tokens import Token
from tests.integration.capture_dataframe.conftest import Capture

FILE = "urn:lake:big/v1/part-00000.parquet#"


def tracked(run: SparkRun, places: list[int], keys: list[int]) -> TrackedFrame:
    """Rows of one file at these places, all in one task."""
    token = Token.pair()
    rows = list(zip(places, keys, strict=True))
    frame = run.spark.createDataFrame(rows, f"{token.b} long, k long").coalesce(1)
    file = run.add_file("file:/big/v1/part-00000.parquet", FILE)
    return TrackedFrame(run, frame.withColumn(token.a, F.lit(file)), [token])


def test_a_place_of_any_size_is_written_whole(capture: Capture, reduced: Callable[[], Reduced]) -> None:
    edges = [10**power + step for power in range(19) for step in (-1, 0, 1)]
    random = Random(3)
    places = sorted({0, 2**63 - 1, *edges, *(random.getrandbits(random.randrange(1, 63)) for _ in range(300))})
    capture(lambda run: tracked(run, places, places).write("out"))
    graph = reduced().graph
    assert set(graph["input"]) == {f"lake:big/v1/part-00000.parquet#{place}" for place in places}
    assert set(graph["output"]) == {f"lake:out/r1/part-00000.parquet#{row}" for row in range(len(places))}


def test_groups_with_and_without_an_alias_are_the_same_groups(capture: Capture, reduced: Callable[[], Reduced]) -> None:
    random = Random(4)
    # Some groups of thousands, many of a few that push each other out of the table, many of one.
    keys = [random.choice((random.randrange(5), random.randrange(30_000), 10**6 + i)) for i in range(90_000)]
    capture(
        lambda run: tracked(run, list(range(len(keys))), keys).groupBy("k").count().write("out", key=["k"]),
    )
    expected: dict[str, set[str]] = defaultdict(set)
    for place, key in enumerate(keys):
        expected[f"lake:out/r1#{key}"].add(f"lake:big/v1/part-00000.parquet#{place}")
    found: dict[str, set[str]] = defaultdict(set)
    for output, source in reduced().graph.iter_rows():
        found[output].add(source)
    assert found == expected
