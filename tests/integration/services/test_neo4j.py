import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from neo4j import GraphDatabase
from neo4j.exceptions import AuthError

from provenance_store.services import lifecycle
from provenance_store.services.neo4j import Neo4j
from provenance_store.services.service import State
from provenance_store.settings import Settings
from tests.services_fixtures import is_gone, running


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Not the session's Neo4j: this one is killed and purged."""
    with running(tmp_path_factory.mktemp("home"), "neo4j") as settings:
        yield settings


def query(settings: Settings, text: str, password: str | None = None) -> list[object]:
    auth = (settings.neo4j.user, password or settings.neo4j_password())
    with GraphDatabase.driver(settings.neo4j_uri, auth=auth) as driver:
        return [record[0] for record in driver.execute_query(text, database_=settings.neo4j.database).records]


def files_with(secret: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_only_the_generated_password_opens_it_and_it_is_nowhere_else(mine: Settings) -> None:
    password = mine.neo4j_password()
    assert query(mine, "RETURN 1") == [1]
    with pytest.raises(AuthError):
        query(mine, "RETURN 1", password="neo4j")
    pid = lifecycle.status(Neo4j(mine)).pid
    process = psutil.Process(pid)
    assert password not in " ".join(process.cmdline())
    assert password not in str(process.environ())
    assert files_with(password, mine.home) == [mine.neo4j_password_file]
    listening = {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}


def test_kill_9_then_up_keeps_nodes_and_takes_a_replaced_password(mine: Settings) -> None:
    query(mine, "CREATE (:Kept {id: 'still here'})")
    service = Neo4j(mine)
    before = lifecycle.status(service)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while lifecycle.status(service).state is not State.STALE:
        assert time.monotonic() < deadline
    old = mine.neo4j_password()
    mine.neo4j_password_file.unlink()
    after = lifecycle.up(service, print)
    assert after.state is State.RUNNING
    assert after.pid != before.pid
    assert mine.neo4j_password() != old
    assert query(mine, "MATCH (n:Kept) RETURN n.id") == ["still here"]
    assert lifecycle.up(service, print) == after


def test_down_leaves_no_process_and_purge_no_data(mine: Settings) -> None:
    service = Neo4j(mine)
    pid = lifecycle.up(service, print).pid
    assert pid is not None
    lifecycle.down(service, print, purge_data=True)
    assert is_gone(pid)
    assert not mine.neo4j_password_file.exists()
    assert [path.name for path in service.folder.iterdir()] == ["lock"]
