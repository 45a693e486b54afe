"""The pieces of the Spark application against brute force: any partitions, batches, copies and restarts."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from provenance_store.model.document import write_document
from provenance_store.model.message import MANIFEST, Headers, Manifest, Message
from provenance_store.reduction.state import State
from provenance_store.reduction.tracking import Tracker
from provenance_store.settings import ReducerSettings, Settings
from spark_apps.reducer.finish import Finisher
from spark_apps.reducer.local import reduce_partitions
from spark_apps.reducer.metrics import Metrics
from tests.property.test_reduction import closure, flat, rename, steps

SCHEMA = (
    "topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, value binary"
)
PARTITIONS = 2


def records(spark: SparkSession, batch: list[list[tuple[int, Message]]]) -> DataFrame:
    """As Spark's Kafka source gives them: a partition of the topic is one of the frame."""
    frames = []
    for partition, messages in enumerate(batch):
        rows = [
            (
                "t",
                partition,
                offset,
                datetime.fromtimestamp(offset, UTC),
                [(name, text.encode()) for name, text in message.headers.items()],
                message.value,
            )
            for offset, message in messages
        ]
        frames.append(spark.createDataFrame(rows, SCHEMA).coalesce(1))
    first, second = frames
    return first.union(second)


@settings(max_examples=5)
@given(st.data())
def test_parts_of_a_state_reduce_to_the_closure(spark_session: SparkSession, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(steps(lake=data.draw(st.booleans()), max_size=3), min_size=1, max_size=4))
    told = [flat(rename(batch, str(seq))) for seq, batch in enumerate(drawn)]
    sent = [Message.of(Headers("r", "dic", "a", seq), write_document("r", edges)) for seq, edges in enumerate(told)]  # type: ignore[arg-type]
    copies = data.draw(st.lists(st.sampled_from(sent), max_size=2))
    manifest = Message.of(Headers("r", "dic", "", 0, kind=MANIFEST), Manifest(attempts={"a": len(sent)}).to_bytes())
    messages = data.draw(st.permutations([*sent, *copies, manifest]))
    batches: list[list[list[tuple[int, Message]]]] = [[[] for _ in range(PARTITIONS)]]
    for offset, message in enumerate(messages):
        if data.draw(st.integers(0, 3)) == 0:
            batches.append([[] for _ in range(PARTITIONS)])
        batches[-1][data.draw(st.integers(0, PARTITIONS - 1))].append((offset, message))
    with tempfile.TemporaryDirectory() as home:
        here = data.draw(st.sampled_from([0, 300_000]))
        chosen = Settings(home=Path(home), reducer=ReducerSettings(edges_here=here))
        state = State(Path(home) / "state")
        state.open()
        for number, batch in enumerate(batches):
            if data.draw(st.booleans()):  # dies before the batch is recorded, and does it again
                reduce_partitions(records(spark_session, batch), state.folder)
                state = State(Path(home) / "state")
                assert sorted(state.open()) == list(range(number))
            state.record(number, reduce_partitions(records(spark_session, batch), state.folder))
        tracker = Tracker(state)
        for parts in state.open().values():
            tracker.add(parts)
        (key,) = tracker.runs()
        assert tracker.is_complete(key)
        finisher = Finisher(spark_session, chosen, state, Metrics())
        out = Path(home) / "out"
        out.mkdir()
        account = finisher.finish("t", tracker.parts(key), tracker.judge(key), out)
        found = list(pl.read_parquet(out / "graph.parquet").iter_rows())
    assert set(found) == closure("r", [edge for edges in told for edge in edges])
    assert (len(found), account.duplicates) == (account.edges_out, len(copies))
    assert len(found) == len(set(found))
