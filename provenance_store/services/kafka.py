"""Kafka: broker and controller in one process (KRaft), reachable from this machine only."""

import base64
import logging
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from provenance_store.errors import ServiceError
from provenance_store.services import jvm
from provenance_store.services.ports import accepts
from provenance_store.services.service import Launch, Say, Service
from provenance_store.settings import LOOPBACK

MAX_MESSAGE_BYTES = 2 * 1024 * 1024  # twice what the message contract asks for
_FORMAT_TIMEOUT_SECONDS = 120.0


class Kafka(Service):
    """The local broker."""

    name = "kafka"

    @property
    def ports(self) -> Mapping[str, int]:
        """Clients' port, and the controller's."""
        chosen = self.settings.services
        return {"kafka_port": chosen.kafka_port, "kafka_controller_port": chosen.kafka_controller_port}

    @property
    def configured_elsewhere(self) -> str | None:
        """Set when clients use another broker."""
        return "HEADWATER_KAFKA__BOOTSTRAP_SERVERS" if self.settings.kafka.bootstrap_servers else None

    @property
    def properties_file(self) -> Path:
        """The broker's configuration, written anew at each start."""
        return self.folder / "server.properties"

    def properties(self) -> dict[str, str | int]:
        """What the broker is told."""
        chosen = self.settings.services
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"CLIENT://{LOOPBACK}:{chosen.kafka_port},CONTROLLER://{LOOPBACK}:{chosen.kafka_controller_port}",
            "advertised.listeners": f"CLIENT://{LOOPBACK}:{chosen.kafka_port}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            "controller.listener.names": "CONTROLLER",
            # Static voters: a dynamic quorum would write the port into the store and not survive a change of it.
            "controller.quorum.voters": f"1@{LOOPBACK}:{chosen.kafka_controller_port}",
            "log.dirs": str(self.data),
            # With one replica there is nobody to copy from after a power cut: do not leave it all to the page cache.
            "log.flush.interval.ms": 1000,
            "log.retention.hours": self.settings.kafka.retention_hours,
            "num.partitions": self.settings.kafka.partitions,
            "auto.create.topics.enable": "false",
            "message.max.bytes": MAX_MESSAGE_BYTES,
            "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
            "default.replication.factor": 1,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # After a crash the controller lets the broker in again only when its old session has run out.
            "broker.session.timeout.ms": 5000,
            "broker.heartbeat.interval.ms": 1000,
            # The default of 128 MiB would be a quarter of the heap.
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        }

    def prepare(self, say: Say) -> None:
        """Fetch the jars, write the configuration, and format the store the first time."""
        jvm.fetch(self.settings, "kafka", say)
        self.properties_file.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        if not (self.data / "meta.properties").exists():
            say("kafka: formatting its store")
            self._format()

    def launch(self) -> Launch:
        """The broker."""
        heap = self.settings.services.kafka_heap
        argv = [*self._java(heap), "kafka.Kafka", str(self.properties_file)]
        return Launch(argv=argv, cwd=self.folder)

    def answers(self) -> bool:
        """Whether it tells a client which brokers there are."""
        if not accepts(self.settings.services.kafka_port):
            return False
        from kafka import KafkaAdminClient  # noqa: PLC0415  (half a second that other commands need not pay)
        from kafka.errors import KafkaError  # noqa: PLC0415

        # While the broker comes up the client warns of every refused try, on the user's terminal.
        logger = logging.getLogger("kafka")
        before, logger.level = logger.level, logging.CRITICAL
        try:
            client = KafkaAdminClient(
                bootstrap_servers=self.address, bootstrap_timeout_ms=3000, request_timeout_ms=3000
            )
            try:
                return bool(client.describe_cluster()["brokers"])
            finally:
                client.close()
        except (KafkaError, OSError):
            return False
        finally:
            logger.level = before

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", f"--config={self.properties_file}"]
        done = subprocess.run(
            [*self._java("128m"), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"Kafka could not format its store in {self.data}. `headwater down kafka --purge-data` removes what "
                f"is there. It said:\n{done.stdout}{done.stderr}"
            )

    def _java(self, heap: str) -> list[str]:
        return [
            jvm.java(),
            f"-Xmx{heap}",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Dlog4j2.configurationFile={jvm.INFRA / 'kafka-log4j2.xml'}",
            "-cp",
            jvm.classpath(self.settings, "kafka"),
        ]
