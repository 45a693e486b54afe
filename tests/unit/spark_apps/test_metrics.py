"""The metrics endpoint answers on this machine alone, in Prometheus' text format."""

from urllib.request import urlopen

import pytest

from provenance_store.errors import ServiceError
from provenance_store.model.account import Account
from provenance_store.reduction.state import Part
from spark_apps.reducer.metrics import Metrics
from spark_apps.reducer.progress import Place


def test_what_was_read_what_waits_and_what_was_finished() -> None:
    metrics = Metrics()
    part = Part(
        name="p", topic="t", run="r", partition=0, messages=3, bytes=900, edges_in=40, edges=25, manifests=1,
        rejected=1, misnamed=False, told_at=0, read_at=0,
    )  # fmt: skip
    account = Account(
        run="r", dic="d", verdict="partial", messages=3, bytes=900, edges_in=40, edges_local=25, edges_out=7,
        duplicates=0, discarded=0, rejected=1, missing={"a": [1]}, seconds=1.0,
    )  # fmt: skip
    metrics.read([part, part])
    metrics.lag({Place("t", 1): 12})
    metrics.finished(account)
    port = metrics.serve(0)
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    for line in (
        'headwater_messages_total{topic="t"} 6.0',
        'headwater_bytes_total{topic="t"} 1800.0',
        'headwater_rejected_total{topic="t"} 2.0',
        'headwater_edges_in_total{topic="t"} 80.0',
        'headwater_edges_local_total{topic="t"} 50.0',
        'headwater_waiting{partition="1",topic="t"} 12.0',
        'headwater_runs_finished_total{verdict="partial"} 1.0',
        "headwater_edges_out_total 7.0",
    ):
        assert line in lines
    with pytest.raises(ServiceError, match=f"port {port}"):
        Metrics().serve(port)
