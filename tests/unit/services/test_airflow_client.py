"""The client against answers as Airflow gives them; tests/system meets the real one."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from provenance_store.errors import JobError, ServiceError
from provenance_store.services import airflow_client
from provenance_store.services.airflow import Airflow
from provenance_store.services.airflow_client import AirflowClient
from provenance_store.settings import ServiceSettings, Settings

Answers = dict[str, list[Any]]


@pytest.fixture
def answers() -> Answers:
    """For each path, what is answered one time after the other; the last one stays."""
    return {"/auth/token": [{"access_token": "t"}]}


@pytest.fixture
def service(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Airflow]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            given = answers.get(path, [404])
            answer = given.pop(0) if len(given) > 1 else given[0]
            is_refused = isinstance(answer, int) or (
                path != "/auth/token" and self.headers["Authorization"] != "Bearer t"
            )
            self.send_response(answer if isinstance(answer, int) else 401 if is_refused else 200)
            self.end_headers()
            self.wfile.write(b"no" if is_refused else json.dumps(answer).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None: ...

    monkeypatch.setattr(airflow_client, "_SECONDS_BETWEEN_LOOKS", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Airflow(Settings(home=tmp_path, services=ServiceSettings(airflow_port=server.server_address[1])))
        server.shutdown()


RUN = "/api/v2/dags/d/dagRuns/r"


def test_a_dag_is_started_once_it_is_known_and_waited_for(service: Airflow, answers: Answers) -> None:
    answers["/api/v2/dags"] = [{"dags": []}, {"dags": [{"dag_id": "d"}]}]
    answers["/api/v2/dags/d/dagRuns"] = [{"dag_run_id": "r"}]
    answers[RUN] = [{"state": "queued"}, {"state": "running"}, {"state": "success"}]
    answers[f"{RUN}/taskInstances"] = [
        {"task_instances": [{"task_id": "one", "state": None}]},
        {"task_instances": [{"task_id": "one", "state": "deferred"}]},
    ]
    answers[f"{RUN}/taskInstances/one/xcomEntries/return_value"] = [{"value": {"outputs": ["counts/r"]}}]
    client = AirflowClient(service, "engineer")
    said: list[str] = []
    assert client.trigger("d", {"count": 1}) == "r"
    client.wait("d", "r", said.append)
    assert said == ["d: queued", "d: one"]
    assert client.returned("d", "r", "one") == {"outputs": ["counts/r"]}


def test_the_run_that_a_version_started_is_found_and_one_that_has_not_begun_is_not_asked(
    service: Airflow, answers: Answers
) -> None:
    answers["/api/v2/dags/d/dagRuns"] = [
        {"dag_runs": [{"dag_run_id": "r", "start_date": None}]},
        {"dag_runs": [{"dag_run_id": "other", "start_date": "now"}, {"dag_run_id": "r", "start_date": "now"}]},
    ]
    answers["/api/v2/dags/d/dagRuns/other/upstreamAssetEvents"] = [{"asset_events": [{"extra": {}}]}]
    answers[f"{RUN}/upstreamAssetEvents"] = [{"asset_events": [{"extra": {"version": "counts/r"}}]}]
    answers[RUN] = [{"state": "success"}]
    assert AirflowClient(service, "engineer").wait_for_next("d", "counts/r", print) == "r"


def test_what_fails_is_named(service: Airflow, answers: Answers) -> None:
    client = AirflowClient(service, "engineer")
    answers[RUN] = [{"state": "failed"}]
    answers[f"{RUN}/taskInstances"] = [{"task_instances": [{"task_id": "one", "state": "failed"}]}]
    with pytest.raises(JobError, match=r"d failed in one: its log is at http://127\.0\.0\.1:\d+/dags/d/runs/r"):
        client.wait("d", "r", print)
    answers["/api/v2/dags"] = [{"dags": []}]
    with pytest.raises(ServiceError, match="knows no DAG d"):
        client.trigger("d", {}, seconds=0)
    answers["/api/v2/dags/d/dagRuns"] = [{"dag_runs": []}]
    with pytest.raises(ServiceError, match="started no run of d"):
        client.wait_for_next("d", "counts/r", print, seconds=0)
    answers["/auth/token"] = [401]
    with pytest.raises(ServiceError, match="answered 401"):
        AirflowClient(service, "engineer")


def test_nobody_there_is_told(tmp_path: Path) -> None:
    nobody = Airflow(Settings(home=tmp_path, services=ServiceSettings(airflow_port=1)))
    with pytest.raises(ServiceError, match="does not answer"):
        AirflowClient(nobody, "engineer")
