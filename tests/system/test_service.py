"""The local Airflow: who gets in, what it listens on, and that nothing of it outlives it. It is the last to be met."""

import configparser
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from provenance_store.services import lifecycle
from provenance_store.services.airflow import USERS, Airflow
from provenance_store.services.service import State
from provenance_store.settings import Settings
from tests.services_fixtures import is_gone
from tests.system.conftest import World


@pytest.fixture
def mine(world: World) -> Settings:
    return world.settings


def ask(service: Airflow, path: str, *, body: dict[str, Any] | None = None, token: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx.request("POST" if body else "GET", f"{service.url}{path}", json=body, headers=headers, timeout=30)
    answer.raise_for_status()
    return answer.json()


def log_in(service: Airflow, user: str, password: str) -> str:
    return str(ask(service, "/auth/token", body={"username": user, "password": password})["access_token"])


def wait_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while not all(map(is_gone, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_only_generated_passwords_open_it_and_it_listens_on_loopback_alone(mine: Settings) -> None:
    service = Airflow(mine)
    passwords = service.passwords()
    assert set(passwords) == set(USERS)
    for path in (*service.secrets, service.data / "airflow.cfg"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for refused in ("", "admin"):
        with pytest.raises(httpx.HTTPStatusError) as told:
            log_in(service, "admin", refused)
        assert told.value.response.status_code in {400, 401}
    with pytest.raises(httpx.HTTPStatusError) as told:
        ask(service, "/api/v2/dags")
    assert told.value.response.status_code == 401
    assert "dags" in ask(service, "/api/v2/dags", token=log_in(service, "viewer", passwords["viewer"]))

    pid = lifecycle.status(service).pid
    assert pid is not None
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    listening = {c.laddr.ip for p in processes for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}
    secrets = [*passwords.values(), *(path.read_text().strip() for path in service.secrets[1:])]
    told_to = [" ".join(p.cmdline()) + str(p.environ()) for p in processes if p.is_running()]
    assert not [secret for secret in secrets for text in told_to if secret in text]
    assert not [secret for secret in secrets if secret in service.log_file.read_text()]


def test_when_one_part_dies_all_end_and_up_starts_them_again(mine: Settings) -> None:
    service = Airflow(mine)
    before = lifecycle.up(service, print)
    assert before.pid is not None
    parts = psutil.Process(before.pid).children()
    triggerer = next(part for part in parts if "triggerer" in part.cmdline())
    os.kill(triggerer.pid, signal.SIGKILL)
    wait_gone([before.pid, *(part.pid for part in parts)])
    assert lifecycle.status(service).state is State.STALE
    assert "triggerer --skip-serve-logs ended with status -9, so all are ended." in service.log_file.read_text()

    after = lifecycle.up(service, print)
    assert after.state is State.RUNNING
    assert after.pid not in {None, before.pid}


def test_a_leader_that_is_killed_leaves_nobody_and_purge_neither_data_nor_secrets(mine: Settings) -> None:
    service = Airflow(mine)
    before = lifecycle.up(service, print)
    assert before.pid is not None
    orphans = [child.pid for child in psutil.Process(before.pid).children(recursive=True)]
    os.kill(before.pid, signal.SIGKILL)
    wait_gone([before.pid])
    lifecycle.down(service, print, purge_data=True)
    wait_gone(orphans)
    assert not [path for path in service.secrets if path.exists()]
    assert [path.name for path in service.folder.iterdir()] == ["lock"]


def test_a_percent_sign_in_a_path_reaches_airflow(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "50%", lake=tmp_path / "lake")
    service = Airflow(settings)
    service.data.mkdir(parents=True)
    (service.data / "migrated").write_text("")
    service._migrate = lambda: None  # type: ignore[method-assign]
    service.prepare(print)
    read = configparser.ConfigParser()
    read.read(service.data / "airflow.cfg")
    assert read["logging"]["base_log_folder"] == str(service.logs / "tasks")
