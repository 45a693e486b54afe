"""Kafka stopped in the middle of a job: `fail` fails it with a sentence, `degrade` lets it end and says partial."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import JobError
from provenance_store.lake import layout, orders
from provenance_store.reduction.exact import reduce_messages
from provenance_store.services import lifecycle
from provenance_store.services.registry import services
from provenance_store.settings import Settings
from provenance_store.transport.kafka import KafkaTransport
from spark_apps.capture.spark_run import SparkRun, run_spark
from tests.services_fixtures import running

PATIENCE = 5.0


def stop_in_the_middle(settings: Settings, *, start_again: bool) -> Callable[[SparkRun], None]:
    (service,) = services(settings, ["kafka"])

    def body(run: SparkRun) -> None:
        frame = run.read("orders")
        frame.groupBy("status").count().write("before")
        lifecycle.down(service, print)
        try:
            frame.filter("cents > 10000").write("after")
        finally:
            if start_again:
                lifecycle.up(service, print)

    return body


def test_both_policies(tmp_path: Path, spark_session: SparkSession) -> None:
    with running(tmp_path, "kafka") as patient:
        kafka = patient.kafka.model_copy(update={"timeout_seconds": PATIENCE})
        settings = patient.model_copy(update={"kafka": kafka, "lake": tmp_path / "lake"})
        orders.generate(settings.lake, count=500, seed=2, version="v1")
        outputs = ["before", "after"]

        with pytest.raises(JobError, match=r"could not be sent to Kafka topic headwater\.dic.*policy is `fail`"):
            run_spark(
                "dic",
                stop_in_the_middle(settings, start_again=True),
                settings=settings,
                session=spark_session,
                run="failing",
                outputs=outputs,
            )
        assert layout.list_datasets(settings.lake) == ["customers", "orders"]

        result = run_spark(
            "dic",
            stop_in_the_middle(settings, start_again=True),
            settings=settings,
            session=spark_session,
            run="going-on",
            outputs=outputs,
            policy="degrade",
        )
        assert result.manifest_sent
        assert layout.list_datasets(settings.lake) == ["after", "before", "customers", "orders"]

        with KafkaTransport(settings).source("headwater.dic") as source:
            reduced = {one.run: one for one in reduce_messages(source)}
        assert reduced["failing"].account.verdict == "unknown"
        account = reduced["going-on"].account
        assert account.verdict == "partial"
        assert sum(map(len, account.missing.values())) >= 1
        # What was sent before the broker went away is all there.
        known = {output for output, _ in reduced["going-on"].graph.iter_rows()}
        assert len({output for output in known if output.startswith("lake:before/")}) == len(orders.STATUSES)
