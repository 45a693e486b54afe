"""The Spark session of whatever runs on Spark here, and how its JVM reaches Kafka."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from provenance_store.errors import SettingsError
from provenance_store.services import jvm
from provenance_store.settings import LOOPBACK, Settings
from provenance_store.transport.kafka import MAX_REQUEST_BYTES
from spark_apps.archive import archive_of

# So many edges a task: few enough for its memory, many enough to be worth a task.
_EDGES_A_TASK = 1_500_000
# Messages of up to a megabyte fall between the regions of Java's usual collector, which then takes half of the time.
_COLLECTOR = "-XX:+UseParallelGC"
# After every fetch Spark asks the broker how far the partition reaches, and at its end that question waits behind a
# fetch which has nothing to get: half a second of each batch, unless the broker is told to answer sooner.
_FETCHING = {"fetch.max.wait.ms": 20}
VISIBILITY = "spark.rdd.cache.visibilityTracking.enabled"


def open_session(
    settings: Settings, application: str, jars: Sequence[Path], conf: dict[str, str] | None = None
) -> SparkSession:
    """A session on the configured master; what `[spark] conf` says goes last."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("JAVA_HOME", str(jvm.java_home()))
    chosen = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Passwords of the Kafka source never show in what Spark prints of its options.
        "spark.sql.redaction.options.regex": "(?i)password|secret|jaas|keystore",
        "spark.redaction.regex": "(?i)password|secret|token|jaas|keystore",
        "spark.sql.session.timeZone": "UTC",
        # Else a task that fills a cache and then fails is tried again from the cache, and what it told is lost.
        VISIBILITY: "true",
        "spark.sql.shuffle.partitions": "8",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.driver.extraJavaOptions": " ".join([_COLLECTOR, *_archived(settings)]),
        "spark.executor.extraJavaOptions": _COLLECTOR,
    }
    if settings.spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    builder = SparkSession.builder.master(settings.spark.master).appName(application)
    for key, value in (chosen | (conf or {}) | settings.spark.conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _archived(settings: Settings) -> list[str]:
    """Have the JVM start from what an earlier one has loaded, where that was kept."""
    archive = archive_of(settings)
    return [f'"-XX:SharedArchiveFile={archive}"', "-Xlog:cds*=off"] if archive.exists() else []


def expect_edges(spark: SparkSession, edges: int) -> None:
    """Have joins over so many edges done in tasks of a size."""
    tasks = max(spark.sparkContext.defaultParallelism, -(-edges // _EDGES_A_TASK))
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def kafka_source_options(settings: Settings) -> dict[str, str]:
    """How Spark's Kafka source reads all of a topic, headers too; the client's options as it takes them."""
    client = {f"kafka.{name}": value for name, value in kafka_client_options(settings).items()}
    fetching = {f"kafka.{name}": str(value) for name, value in _FETCHING.items()}
    return {**client, **fetching, "includeHeaders": "true", "startingOffsets": "earliest"}


def kafka_producer_options(settings: Settings) -> dict[str, str]:
    """The configuration of an idempotent producer in the JVM, with the same promises as the Python one."""
    kafka = settings.kafka
    timeout = round(kafka.timeout_seconds * 1000)
    serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
    return {
        **kafka_client_options(settings),
        "acks": "all",
        "enable.idempotence": "true",
        "key.serializer": serializer,
        "value.serializer": serializer,
        "compression.type": "zstd" if kafka.compression == "auto" else kafka.compression,
        "batch.size": str(1 << 20),
        "linger.ms": "20",
        "max.request.size": str(MAX_REQUEST_BYTES),
        "max.block.ms": str(timeout),
        "request.timeout.ms": str(min(30_000, timeout // 2)),
        "delivery.timeout.ms": str(timeout),
    }


def kafka_client_options(settings: Settings) -> dict[str, str]:
    """How a Kafka client in the JVM reaches the same broker under the same identity as the Python clients."""
    kafka = settings.kafka
    options = {
        "bootstrap.servers": settings.bootstrap_servers,
        "security.protocol": kafka.security_protocol,
    }
    if kafka.security_protocol.startswith("SASL"):
        if kafka.sasl_username is None or kafka.sasl_password is None:
            raise SettingsError(
                "Kafka with SASL needs HEADWATER_KAFKA__SASL_USERNAME and HEADWATER_KAFKA__SASL_PASSWORD."
            )
        module = (
            "org.apache.kafka.common.security.plain.PlainLoginModule"
            if kafka.sasl_mechanism == "PLAIN"
            else "org.apache.kafka.common.security.scram.ScramLoginModule"
        )
        user, password = map(_quote, (kafka.sasl_username, kafka.sasl_password.get_secret_value()))
        options["sasl.mechanism"] = kafka.sasl_mechanism
        options["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if kafka.security_protocol.endswith("SSL"):
        if kafka.ssl_cafile is not None:
            options["ssl.truststore.type"] = "PEM"
            options["ssl.truststore.location"] = str(kafka.ssl_cafile)
        if kafka.ssl_certfile is not None:
            # The key may stand in the certificate's own file, as Python's clients allow.
            options["ssl.keystore.type"] = "PEM"
            options["ssl.keystore.certificate.chain"] = kafka.ssl_certfile.read_text()
            options["ssl.keystore.key"] = (kafka.ssl_keyfile or kafka.ssl_certfile).read_text()
    return options


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
