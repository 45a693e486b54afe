"""Partitions that stand still are named, once, and again when it happens again."""

import json
from typing import Any

from spark_apps.reducer.progress import Lag, Place


def progress(*, read: dict[str, int], there: dict[str, int]) -> dict[str, Any]:
    return {"sources": [{"endOffset": json.dumps({"t": read}), "latestOffset": {"t": there}}]}


def test_what_waits_in_each_partition_is_known() -> None:
    lag = Lag(patience=30)
    lag.update(progress(read={"0": 5, "1": 9}, there={"0": 12, "1": 9}))
    assert lag.waiting == {Place("t", 0): 7, Place("t", 1): 0}


def test_a_partition_that_stands_still_is_named_once() -> None:
    now = 0.0
    lag = Lag(patience=30, clock=lambda: now)
    lag.update(progress(read={"0": 5, "1": 5}, there={"0": 12, "1": 5}))
    now = 29.0
    assert list(lag.stalled()) == []
    now = 31.0
    lag.update(progress(read={"0": 5, "1": 5}, there={"0": 13, "1": 5}))
    (told,) = lag.stalled()  # partition 1 is silent because nothing is there
    assert told == "partition 0 of t has not been read for 31 s, and 8 messages wait in it"
    assert list(lag.stalled()) == []
    lag.update(progress(read={"0": 6, "1": 5}, there={"0": 13, "1": 5}))
    now = 70.0
    (again,) = lag.stalled()
    assert "partition 0 of t" in again


def test_a_progress_without_offsets_tells_nothing() -> None:
    lag = Lag(patience=0)
    lag.update({"sources": [{"endOffset": None}]})
    lag.update({"sources": [{"endOffset": "", "latestOffset": "-"}]})  # as after a restart
    lag.update({})
    assert lag.waiting == {}
    assert list(lag.stalled()) == []
