"""Neo4j Community: the lake graph's database, with Bolt and a password, reachable from this machine only."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from provenance_store.services import jvm
from provenance_store.services.ports import accepts
from provenance_store.services.service import Launch, Say, Service
from provenance_store.settings import LOOPBACK, read_or_make_secret

USER = "neo4j"
_OPENED_PACKAGES = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")


class Neo4j(Service):
    """The local graph database."""

    name = "neo4j"

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of Bolt."""
        return {"neo4j_port": self.settings.services.neo4j_port}

    @property
    def secrets(self) -> Sequence[Path]:
        """The generated password."""
        return (self.settings.neo4j_password_file,)

    @property
    def configured_elsewhere(self) -> str | None:
        """Set when clients use another Neo4j."""
        return "HEADWATER_NEO4J__URI" if self.settings.neo4j.uri else None

    def password(self) -> str:
        """The password that clients will use: the configured one where it is meant for this server, else generated."""
        if self.settings.neo4j.password is not None and self.settings.neo4j.uri is None:
            return self.settings.neo4j.password.get_secret_value()
        return read_or_make_secret(self.settings.neo4j_password_file, lambda: secrets.token_urlsafe(24))

    def _has_password(self) -> bool:
        return self.settings.neo4j.password is not None or self.settings.neo4j_password_file.exists()

    def configuration(self) -> dict[str, str]:
        """What the server is told."""
        chosen = self.settings.services
        return {
            "server.directories.data": str(self.data),
            "server.directories.logs": str(self.logs),
            "server.default_listen_address": LOOPBACK,
            "server.default_advertised_address": LOOPBACK,
            "server.bolt.enabled": "true",
            "server.bolt.listen_address": f"{LOOPBACK}:{chosen.neo4j_port}",
            "server.bolt.advertised_address": f"{LOOPBACK}:{chosen.neo4j_port}",
            "server.http.enabled": "false",
            "server.https.enabled": "false",
            "initial.dbms.default_database": self.settings.neo4j.database,
            "dbms.security.auth_enabled": "true",
            "dbms.usage_report.enabled": "false",
            # Left alone it takes half of the machine's memory. A million records with three edges each are 0.8 GB.
            "server.memory.pagecache.size": chosen.neo4j_page_cache,
            # The logs of old transactions serve backups only, and keep what a purge has removed.
            "db.tx_log.rotation.retention_policy": "keep_none",
            "db.tx_log.rotation.size": "64m",
            "db.tx_log.preallocate": "false",
        }

    def prepare(self, say: Say) -> None:
        """Fetch the jars and write the configuration."""
        jvm.fetch(self.settings, "neo4j", say)
        configuration = self.folder / "conf" / "neo4j.conf"
        configuration.parent.mkdir(exist_ok=True)
        configuration.write_text("".join(f"{key}={value}\n" for key, value in self.configuration().items()))
        configuration.chmod(0o600)  # Neo4j refuses one that others may write

    def launch(self) -> Launch:
        """The server, by its single-file launcher."""
        argv = [
            jvm.java(),
            f"-Xmx{self.settings.services.neo4j_heap}",
            "-XX:+ExitOnOutOfMemoryError",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-cp",
            jvm.classpath(self.settings, "neo4j"),
            str(jvm.INFRA / "Neo4jLauncher.java"),
            str(self.folder),
        ]
        return Launch(argv=argv, cwd=self.folder, stdin=self.password())

    def answers(self) -> bool:
        """Whether it lets us in with the password and runs a query."""
        if not accepts(self.settings.services.neo4j_port):
            return False
        if not self._has_password():  # asking must not make one that the running server does not know
            return False
        from neo4j import GraphDatabase  # noqa: PLC0415  (half a second that other commands need not pay)
        from neo4j.exceptions import DriverError, Neo4jError  # noqa: PLC0415

        # While the server comes up the driver warns of every refused try, on the user's terminal.
        logger = logging.getLogger("neo4j")
        before, logger.level = logger.level, logging.CRITICAL
        try:
            with GraphDatabase.driver(
                f"bolt://{self.address}",
                auth=(USER, self.password()),
                connection_timeout=3,
                connection_acquisition_timeout=3,
            ) as driver:
                driver.verify_connectivity()
                # The server takes logins a moment before it serves the database.
                driver.execute_query("RETURN 1", database_=self.settings.neo4j.database)
        except (DriverError, Neo4jError, OSError):
            return False
        finally:
            logger.level = before
        return True
