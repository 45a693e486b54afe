"""One Spark for all tests of a process: a JVM takes its jars when it starts, and there is one JVM a process."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from provenance_store.settings import Settings, SparkSettings
from spark_apps.capture.jar import capture_jars
from spark_apps.session import open_session


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local Spark with the jars of reducer and capture; nobody else stops it."""
    home = tmp_path_factory.mktemp("spark-home")
    spark = SparkSettings(driver_memory="1g", conf={"spark.sql.shuffle.partitions": "2"})
    settings = Settings(home=home, lake=home / "lake", spark=spark)
    session = open_session(settings, "headwater-tests", capture_jars(settings, print))
    yield session
    session.stop()
