"""RDDs captured through a real broker, and both policies when it stops in the middle of a job."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from provenance_store.errors import JobError
from provenance_store.lake import layout
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.services import lifecycle
from provenance_store.services.registry import services
from provenance_store.settings import Settings
from provenance_store.transport.wiring import open_transport
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.capture.writer import Policy
from tests.services_fixtures import running


def job(between: Callable[[], None], after: Callable[[], None]) -> Callable[[SparkRun], None]:
    """Counts words in two steps, so that something can happen between them."""

    def body(run: SparkRun) -> None:
        counts = run.text("words").map(lambda line: (line, 1)).reduceByKey(lambda a, b: a + b)
        assert counts.untracked.count() == 10
        between()
        try:
            counts.filter(lambda pair: pair[0] != "w3").map(str).saveAsTextFile("out")
        finally:
            after()

    return body


def put_words(settings: Settings) -> None:
    with layout.new_version(layout.version_of(settings.lake, "words", "v1"), {}) as folder:
        (folder / "a.txt").write_text("".join(f"w{n % 10}\n" for n in range(1000)))


def reduce_topic(settings: Settings, topic: str, run: str) -> Reduced:
    return next(one for one in reduce_messages(open_transport(settings).source(topic)) if one.run == run)


def nothing() -> None:
    pass


def test_what_goes_through_kafka_is_whole(kafka_service: Settings, spark_session: SparkSession, tmp_path: Path) -> None:
    settings = kafka_service.model_copy(update={"home": tmp_path / "home", "lake": tmp_path / "lake"})
    put_words(settings)
    for run in ("r1", "r2"):  # the second finds the workers' producers open
        run_spark(
            "rdd-words", job(nothing, nothing), settings=settings, session=spark_session, run=run, outputs=["out"]
        )
        reduced = reduce_topic(settings, "headwater.rdd-words", run)
        assert reduced.account.verdict == "complete"
        assert reduced.graph.height == 900


def test_a_broker_that_stops_in_the_middle(spark_session: SparkSession, tmp_path: Path) -> None:
    with running(tmp_path / "home", "kafka") as started:
        kafka = started.kafka.model_copy(update={"timeout_seconds": 4.0})
        settings = started.model_copy(update={"kafka": kafka})
        put_words(settings)
        (service,) = services(settings, ("kafka",))

        def stop() -> None:
            lifecycle.down(service, print)

        def start() -> None:
            lifecycle.up(service, print)

        def execute(run: str, policy: Policy) -> Any:
            body = job(stop, start)
            return run_spark(
                "stopped", body, settings=settings, session=spark_session, run=run, outputs=["out"], policy=policy
            )

        with pytest.raises(JobError, match="no manifest was sent"):
            execute("r1", "fail")
        assert not layout.version_of(settings.lake, "out", "r1").exists()
        assert execute("r2", "degrade").manifest_sent
        assert len(list(layout.resolve(settings.lake, "out/r2").files())) > 0
        account = reduce_topic(settings, "headwater.stopped", "r2").account
        assert account.verdict == "partial"
        assert all("saveAsTextFile" in attempt for attempt in account.missing)
        assert account.missing
