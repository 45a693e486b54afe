"""The connection to Neo4j: sessions, transactions that may be replayed, and its errors in our words."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any, LiteralString, TypeVar

from neo4j import READ_ACCESS, Driver, GraphDatabase, ManagedTransaction, Query, Session
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DriverError,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
)

from provenance_store.errors import GraphError, InputError, SettingsError
from provenance_store.settings import Settings
from provenance_store.streams.links import StreamLinks

T = TypeVar("T")

_REPLAYS = 5
# A record that one merge removes as an orphan may be the one that another merge is about to link: both see the conflict
# only on commit, and both are right the second time.
_CONFLICTS = frozenset(
    ("Neo.ClientError.Statement.EntityNotFound", "Neo.ClientError.Schema.ConstraintValidationFailed")
)


@cache
def cypher(name: str) -> LiteralString:
    """The statement in `<name>.cypher`. It is ours, whole and constant: values only ever come as parameters."""
    return resources.files(__package__).joinpath(f"{name}.cypher").read_text("utf-8")


class Connection:
    """One driver on the configured database, checked to answer."""

    def __init__(self, settings: Settings) -> None:
        self.streams = StreamLinks(settings.lake)
        self._uri = settings.neo4j_uri
        self._user = settings.neo4j.user
        self._database = settings.neo4j.database
        if not re.match(r"(bolt|neo4j)(\+s|\+ssc)?://", self._uri):
            raise SettingsError(
                f"{self._uri!r} is not the address of a Neo4j: HEADWATER_NEO4J__URI begins with bolt:// or neo4j://, "
                "or over TLS with bolt+s:// or neo4j+s://."
            )
        password = settings.neo4j_password()
        with self.errors():
            self._driver: Driver = GraphDatabase.driver(
                self._uri,
                auth=(self._user, password),
                connection_timeout=10.0,
                max_transaction_retry_time=120.0,
                # Our statements are tested; hints on them would only reach the user's log.
                notifications_min_severity="OFF",
            )
            try:
                # Without this first try an unreachable server would be retried for as long as a deadlock.
                with self._session() as session:
                    session.run("RETURN 1").consume()
            except BaseException:
                self._driver.close()
                raise

    def close(self) -> None:
        """Give the connections back."""
        self._driver.close()

    def read(self, work: Callable[[ManagedTransaction], T]) -> T:
        """Run `work` in one read transaction, again where the error was a passing one."""
        with self.errors(), self._session(default_access_mode=READ_ACCESS) as session:
            return session.execute_read(work)

    def write(self, work: Callable[[ManagedTransaction], T]) -> T:
        """Run `work` in one write transaction, which must be safe to replay.

        The driver replays deadlocks and lost connections; it leaves a commit of unknown outcome to us.
        """
        with self.errors(), self._session() as session:
            for _ in range(_REPLAYS - 1):
                try:
                    return session.execute_write(work)
                except IncompleteCommit:
                    continue
                except Neo4jError as error:
                    if error.code not in _CONFLICTS:
                        raise
            return session.execute_write(work)

    def fetch(
        self, query: str, parameters: Mapping[str, Any], *, timeout_seconds: float
    ) -> tuple[list[str], list[list[Any]], Any]:
        """Columns, rows and summary of a query that is not ours, in read access mode."""
        with self.errors(), self._session(default_access_mode=READ_ACCESS) as session:
            try:
                result = session.run(Query(query, timeout=timeout_seconds), dict(parameters))
                columns, rows = list(result.keys()), [list(record.values()) for record in result]
                return columns, rows, result.consume()
            except Neo4jError as error:
                if (error.code or "").startswith("Neo.ClientError.Statement."):
                    raise InputError(f"Neo4j cannot run this query: {error.message}") from error
                raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Neo4j's errors, in words that name the setting to look at."""
        try:
            yield
        except AuthError as error:
            raise GraphError(
                f"Neo4j at {self._uri} refuses user {self._user!r} with this password: check HEADWATER_NEO4J__USER and "
                "HEADWATER_NEO4J__PASSWORD; the password of a local one is made by `headwater up neo4j`."
            ) from error
        except ServiceUnavailable as error:
            raise GraphError(
                f"Neo4j at {self._uri} does not answer: run `headwater up neo4j`, or set HEADWATER_NEO4J__URI to where "
                "it runs."
            ) from error
        except ConfigurationError as error:
            raise GraphError(
                f"{self._uri} is not the address of a Neo4j: check HEADWATER_NEO4J__URI. {error}"
            ) from error
        except Neo4jError as error:
            raise GraphError(f"Neo4j at {self._uri} refused: {error.message or error.code}") from error
        except DriverError as error:
            raise GraphError(f"The exchange with Neo4j at {self._uri} failed: {error}") from error

    def _session(self, **options: Any) -> Session:
        return self._driver.session(database=self._database, **options)
