"""A small shop to capture from, and captured runs over it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from provenance_store.lake import orders
from provenance_store.reduction.exact import Reduced, reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.run import RunResult
from spark_apps.capture.spark_run import SparkRun, run_spark

Capture = Callable[..., RunResult]


@pytest.fixture
def shop(tmp_path: Path) -> Settings:
    """A lake with a few orders, and recordings instead of a broker."""
    settings = Settings(home=tmp_path / "home", lake=tmp_path / "lake", recordings=tmp_path / "recordings")
    orders.generate(settings.lake, count=200, seed=5, version="v1")
    return settings


@pytest.fixture
def capture(shop: Settings, spark_session: SparkSession) -> Capture:
    """Run a body under capture; its outputs are named after their datasets."""

    def call(body: Callable[[SparkRun], None], *outputs: str, run: str = "r1") -> RunResult:
        return run_spark("dic", body, settings=shop, session=spark_session, run=run, outputs=outputs or ["out"])

    return call


@pytest.fixture
def reduced(shop: Settings) -> Callable[[], Reduced]:
    """The only run's reduced graph."""

    def call() -> Reduced:
        assert shop.recordings is not None
        (only,) = reduce_messages(RecordingSource(shop.recordings / "headwater.dic"))
        return only

    return call
