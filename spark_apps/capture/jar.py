"""The Java side of capture, compiled once from the sources beside this file against Spark's own jars."""

import importlib.util
import os
from pathlib import Path

from provenance_store.errors import SettingsError
from provenance_store.services import jvm
from provenance_store.services.compiling import compiled
from provenance_store.services.service import Say
from provenance_store.settings import Settings

_SOURCES = Path(__file__).resolve().parent / "jvm"


def capture_jars(settings: Settings, say: Say) -> list[Path]:
    """The compiled jar and the Kafka client that it and Spark's Kafka source need."""
    jvm.fetch(settings, "spark", say)
    classpath = os.pathsep.join([str(spark_jars() / "*"), jvm.classpath(settings, "spark")])
    jar = compiled(settings, "capture", sorted(_SOURCES.rglob("*.java")), classpath, say)
    return [jar, *jvm.jars(settings, "spark")]


def spark_jars() -> Path:
    """The folder of pyspark's own jars."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SettingsError("pyspark is not installed in this environment: run `make setup`.")
    return Path(spec.origin).parent / "jars"
