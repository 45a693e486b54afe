"""Live forward provenance of Spark's own operators, on real Structured Streaming, against brute force."""

import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_apps.streams.native_live import native_live

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = "id string, time timestamp, sources array<struct<id: string, time: timestamp>>"
BATCHES = 4


class Element(NamedTuple):
    at: int
    kind: str
    id: str
    input: str | None = None


class Result(NamedTuple):
    id: str
    time: int
    sources: list[tuple[str, int]]


def moment(time: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time)


def random_results(reach: int, seed: int) -> list[list[Result]]:
    """Batches of results whose sources lie up to `reach` before them; some sources lead to results at both ends."""
    chance = random.Random(seed)
    span = max(reach, 3)
    sources = {f"in/{at}": chance.randrange(2 * BATCHES * span - reach) for at in range(60)}
    met = [time + end for time in list(sources.values())[:20] for end in (0, reach)]
    batches: list[list[Result]] = [[] for _ in range(BATCHES)]
    for number, time in enumerate(met + [chance.randrange(2 * BATCHES * span) for _ in range(80)]):
        near = [one for one in sources.items() if time - reach <= one[1] <= time]
        some = near if number < len(met) else chance.sample(near, min(len(near), chance.randint(1, 5)))
        batches[time // (2 * span)].append(Result(f"out/{number}", time, some))
    return batches


def expect(results: list[Result], reach: int) -> set[Element]:
    """Each element at the time that the paper says."""

    def delay(time: int) -> int:
        return (time // reach + 2) * reach if reach else time

    expected, first = set(), {}
    for one in results:
        expected |= {Element(one.time, "sink", one.id), Element(delay(one.time), "expired", one.id)}
        for source, _ in one.sources:
            expected.add(Element(delay(one.time), "edge", one.id, source))
            first[source] = min(one.time, first.get(source, one.time))
    for source, time in first.items():
        expected |= {Element(delay(time), "source", source), Element(delay(delay(time)), "expired", source)}
    return expected


def run(spark: SparkSession, folder: Path, batches: list[list[Result]], reach: int) -> list[list[Element]]:
    """What each batch gives out."""
    (folder / "in").mkdir()
    for number, results in enumerate(batches):
        times = [[{"id": source, "time": moment(time)} for source, time in one.sources] for one in results]
        columns = {"id": [one.id for one in results], "time": [moment(one.time) for one in results], "sources": times}
        source = pa.struct([("id", pa.string()), ("time", pa.timestamp("us", "UTC"))])
        types = [("id", pa.string()), ("time", pa.timestamp("us", "UTC")), ("sources", pa.list_(source))]
        pq.write_table(pa.table(columns, pa.schema(types)), folder / "in" / f"{number}.parquet")
        # The file source takes the oldest first.
        stamp = 1_000_000 + number
        os.utime(folder / "in" / f"{number}.parquet", (stamp, stamp))
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    elements = native_live(read.withWatermark("time", "0 seconds"), reach)
    given: list[list[Element]] = []

    def take(frame: Any, _: int) -> None:
        rows = frame.selectExpr("unix_millis(at)", "kind", "id", "input").collect()
        given.append([Element(*row) for row in rows])

    checkpoint = str(folder / "checkpoint")
    writer = elements.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    return given


@pytest.mark.parametrize("reach", [0, 1, 7, 1000])
def test_native_operators_give_out_each_element_once_at_its_time(
    spark_session: SparkSession, tmp_path: Path, reach: int
) -> None:
    batches = random_results(reach, seed=reach)
    far = 100 * max(reach, 3)
    given = run(spark_session, tmp_path, [*batches, [Result("push", far, [])]], reach)
    elements = [one for batch in given for one in batch if one.id != "push"]
    results = [one for batch in batches for one in batch]
    assert len(results) > 40
    assert reach in set(spreads(results).values())
    assert max(Counter(elements).values()) == 1
    assert set(elements) == expect(results, reach)
    check_requirements(elements)
    check_order(given)


def spreads(results: list[Result]) -> dict[str, int]:
    """How far the results of each source lie apart."""
    times: dict[str, list[int]] = {}
    for one in results:
        for source, _ in one.sources:
            times.setdefault(source, []).append(one.time)
    return {source: max(own) - min(own) for source, own in times.items()}


def check_requirements(elements: list[Element]) -> None:
    """R-V, R-E and R-L by times: no edge before its vertices, no label before an edge."""
    vertices = {one.id: one.at for one in elements if one.kind in {"source", "sink"}}
    labels = {one.id: one.at for one in elements if one.kind == "expired"}
    assert vertices.keys() == labels.keys()
    for one in elements:
        if one.kind == "edge":
            assert one.input is not None
            assert max(vertices[one.id], vertices[one.input]) <= one.at <= min(labels[one.id], labels[one.input])


def check_order(given: list[list[Element]]) -> None:
    """Whoever takes batch after batch, and sorts in each, has every vertex before its edges before its label."""
    rank = {"sink": 0, "source": 0, "edge": 1, "expired": 2}
    known: set[str] = set()
    expired: set[str] = set()
    for batch in given:
        for one in sorted(batch, key=lambda one: (one.at, rank[one.kind])):
            ends = {one.id} if one.input is None else {one.id, one.input}
            assert not ends & expired
            if rank[one.kind]:
                assert ends <= known
            (expired if one.kind == "expired" else known).update(ends)
