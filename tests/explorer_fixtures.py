"""A real Airflow server with the explorer in it, on a Neo4j of its own that can be cut off, and a small Twitter lake.

The server is `airflow api-server` alone: nothing here needs a scheduler, and it is there sooner.
"""

import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from headwater_airflow.runs import run_of
from provenance_store.graph.queries import LakeGraph
from provenance_store.lake.records import lines_of
from provenance_store.settings import CHECKOUT, LOOPBACK, Settings
from provenance_store.streams import service
from provenance_store.streams.live import Edge, Expired, SinkVertex, SourceVertex
from tests.handmade import put, tell
from tests.item_monitor import RUN, monitor_items
from tests.live_stream import message
from tests.reduced import write_reduced
from tests.services_fixtures import free_ports, running

ROLES = {"ada": "admin", "olga": "op", "uma": "user", "vera": "viewer"}
TWITTER_DAG, TWITTER_RUN = "twitter_hashtags", "manual__2026-03-04T05:06:07.000008+00:00"
BIG = 5_000
# Every call that there is: to look, and those that need more.
VIEWED = [
    ("GET", "explorer", None),
    ("GET", "assets/nothing.js", None),
    ("GET", "icon.svg", None),
    ("GET", "api/health", None),
    ("GET", "api/overview", None),
    ("POST", "api/search", {"text": "tweets"}),
    ("GET", "api/record?id=lake:a/1%231", None),
    ("GET", "api/neighbours?id=lake:a/1%231&direction=backward", None),
    ("GET", "api/run?run=r", None),
    ("POST", "api/export", {"id": "lake:a/1#1", "direction": "backward", "format": "json"}),
    ("GET", "api/streams/jobs", None),
    ("GET", "api/streams/lags", None),
    ("GET", "api/streams/results?run=r", None),
    ("GET", "api/streams/sources?id=lake:a/1%231", None),
]
SELECTION = ("POST", "api/selections", {"by": "ids", "ids": ["lake:a/1#1"]})
REPLAY = ("GET", "api/streams/replay?id=lake:a/1%231", None)


class Wire:
    """A way to a port that can be cut and mended, as if what listens there were stopped and started."""

    def __init__(self, port: int) -> None:
        self._to = port
        (self.port,) = free_ports(1)
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None

    def mend(self) -> None:
        """Listen, and carry what comes."""
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Refuse who comes, and drop who is there."""
        if self._listener is not None:
            # A thread that waits in accept keeps the socket open: this wakes it.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((LOOPBACK, self._to))
            self._open += [near, far]
            threading.Thread(target=_carry, args=(near, far), daemon=True).start()


def _carry(near: socket.socket, far: socket.socket) -> None:
    with near, far, selectors.DefaultSelector() as selector, suppress(OSError):
        selector.register(near, selectors.EVENT_READ, far)
        selector.register(far, selectors.EVENT_READ, near)
        while True:
            for key, _ in selector.select():
                content = key.fileobj.recv(65536)
                if not content:
                    return
                key.data.sendall(content)


@dataclass(frozen=True)
class Lake:
    """The records that tests speak of."""

    tweets: list[str]
    tags: list[str]
    total: str
    big: str
    counted: str
    summed: str


@dataclass(frozen=True)
class ExplorerServer:
    """Where it is, who may log in, and what it is about."""

    url: str
    passwords: dict[str, str]
    settings: Settings
    wire: Wire
    lake: Lake
    log: Path

    def client(self, user: str | None = None) -> httpx.Client:
        """A client that is logged in as someone, or as nobody."""
        headers = {}
        if user is not None:
            told = {"username": user, "password": self.passwords[user]}
            token = (
                httpx.post(f"{self.url}/auth/token", json=told, timeout=60).raise_for_status().json()["access_token"]
            )
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Client(base_url=f"{self.url}/headwater/", headers=headers, timeout=120)

    @contextmanager
    def without_neo4j(self) -> Iterator[None]:
        self.wire.cut()
        try:
            yield
        finally:
            self.wire.mend()


@pytest.fixture(scope="session")
def explorer_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExplorerServer]:
    folder = tmp_path_factory.mktemp("explorer")
    with running(folder / "home", "neo4j") as there:
        wire = Wire(urllib.parse.urlsplit(there.neo4j_uri).port or 0)
        wire.mend()
        address = {"uri": f"bolt://{LOOPBACK}:{wire.port}", "password": there.neo4j_password()}
        settings = Settings(home=folder / "home", lake=folder / "lake", neo4j=address)
        lake = _fill(settings, folder)
        passwords = {user: secrets.token_urlsafe(12) for user in ROLES}
        with _serving(folder, settings, passwords) as (url, log):
            yield ExplorerServer(url, passwords, settings, wire, lake, log)
        wire.cut()


@dataclass(frozen=True)
class LiveQuery:
    """A stream query that goes on: of two readings an alert was made; one of them is live, the other has expired."""

    run: str
    live: str
    expired: str
    alert: str
    settings: Settings

    def tell_more(self) -> str:
        """Another alert, from the reading that is live; its id."""
        more = f"lake:alerts/{self.run}/part-0.jsonl#40"
        elements = [SinkVertex(60, more, 60), Edge(60, more, self.live), Expired(60, more)]
        with LakeGraph(self.settings) as graph:
            graph.apply_live([message(self.run, elements, step=1, watermark=60)])
        return more


@pytest.fixture
def live_query(explorer_server: ExplorerServer, tmp_path: Path) -> Iterator[LiveQuery]:
    """Gone again when the test is over, as other tests look at the whole lake."""
    settings, run = explorer_server.settings, f"alerts-{secrets.token_hex(4)}"
    live, expired = (f"lake:readings/{run}/part-0.jsonl#{place}" for place in (0, 30))
    alert = f"lake:alerts/{run}/part-0.jsonl#0"
    begun = [SourceVertex(0, live, 20), SourceVertex(0, expired, -90), SinkVertex(0, alert, 20)]
    edges = [Edge(0, alert, live), Edge(0, alert, expired), Expired(0, alert), Expired(50, expired)]
    with LakeGraph(settings) as graph:
        graph.ensure_schema()
        graph.apply_live([message(run, [*begun, *edges], watermark=50)])
        yield LiveQuery(run, live, expired, alert, settings)
        graph.merge(write_reduced(tmp_path / "finished", run, [(alert, live)], dic="alerts"))
        graph.prune(before=datetime.now(UTC), dataset="alerts")


@pytest.fixture(scope="session")
def stream_run(explorer_server: ExplorerServer) -> str:
    """A finished run of ItemMonitor in the lake, and how its result that cannot be is called."""
    settings = explorer_server.settings
    monitor_items(settings.home, lake=settings.lake)
    found = service.results(settings.lake, RUN, "item-warnings")
    return next(one.id for one in found if one.content["warning"] == "ABNORMAL")


def _fill(settings: Settings, folder: Path) -> Lake:
    """Tweets, the counts of their tags by a DAG run, totals of categories by a run with a gap, and something big."""
    tell(
        settings.lake, '[tweets]\nformat = "text"\ncolumns = ["handle", "text"]\nseparator = "\\t"\nkey = ["handle"]\n'
    )
    tell(settings.lake, 'policy = { do = "delete" }\n')
    version = put(settings.lake, "tweets/n40-s1", [f"handle{n}\t#tag{n % 8}" for n in range(40)])
    tweets = [record for record, _ in lines_of(version)]
    tags = [f"lake:hashtag_counts/2026-03-04/part-00000#{place}" for place in range(0, 88, 11)]
    total, other = (f"lake:category_totals/2026-03-04#{name}" for name in ("sport", "music"))
    big = "lake:yearly_report/2026#all"
    counted = run_of("hashtag-count", TWITTER_DAG, TWITTER_RUN)
    summed = "category-totals-by-hand"
    runs = [
        (counted, "hashtag-count", "complete", {(tags[n % 8], tweet) for n, tweet in enumerate(tweets)}),
        (summed, "category-totals", "partial", {(total if n < 5 else other, tag) for n, tag in enumerate(tags)}),
        ("report-1", "yearly-report", "unknown", {(big, f"lake:orders/2026/o.csv#{n}") for n in range(BIG + 204)}),
    ]
    with LakeGraph(settings) as graph:
        for run, dic, verdict, edges in runs:
            missing = {"attempt-1": [3]} if verdict == "partial" else {}
            graph.merge(write_reduced(folder / "reduced" / run, run, edges, dic=dic, verdict=verdict, missing=missing))
    return Lake(tweets, tags, total, big, counted, summed)


@contextmanager
def _serving(folder: Path, settings: Settings, passwords: dict[str, str]) -> Iterator[tuple[str, Path]]:
    (port,) = free_ports(1)
    (folder / "passwords.json").write_text(json.dumps(passwords))
    url, log = f"http://{LOOPBACK}:{port}", folder / "api-server.log"
    environment = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(CHECKOUT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in ROLES.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "HEADWATER_HOME": str(settings.home),
        "HEADWATER_LAKE": str(settings.lake),
        "HEADWATER_JVM": str(settings.jvm),
        "HEADWATER_NEO4J__URI": settings.neo4j_uri,
        "HEADWATER_NEO4J__PASSWORD": settings.neo4j_password(),
    }
    airflow = [sys.executable, "-m", "airflow"]
    with log.open("wb") as output:
        for command in (["db", "migrate"], ["dags", "reserialize"]):
            subprocess.run([*airflow, *command], env=environment, stdout=output, stderr=output, check=True, timeout=300)
        server = subprocess.Popen(
            [*airflow, "api-server", "--host", LOOPBACK, "--port", str(port), "--workers", "1"],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait(url, server, log)
        yield url, log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 240
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/api/v2/monitor/health", timeout=5).is_success:
                return
        if server.poll() is not None:
            break
        time.sleep(0.5)
    raise AssertionError(f"Airflow's server did not come up:\n{log.read_text()[-4000:]}")
