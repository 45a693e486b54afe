"""A client of Airflow as a user's own would be: the REST API, with a login."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Self

import httpx

from provenance_store.services.airflow import Airflow

_ENDED = ("success", "failed")


class Client:
    """What one user can see and do."""

    def __init__(self, service: Airflow, user: str) -> None:
        self._http = httpx.Client(base_url=service.url, timeout=60)
        password = service.passwords()[user]
        answer = self._http.post("/auth/token", json={"username": user, "password": password})
        answer.raise_for_status()
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request; the answer whatever it is."""
        return self._http.request(method, f"/api/v2{path}", json=body)

    def get(self, path: str) -> Any:
        """What stands at a path."""
        answer = self.ask("GET", path)
        answer.raise_for_status()
        return answer.json()

    def trigger(self, dag: str, **conf: Any) -> str:
        """Start a DAG, once it is known; the id of its run."""
        wait(lambda: self.ask("GET", f"/dags/{dag}").is_success, f"DAG {dag}")
        answer = self.ask("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        assert answer.is_success, answer.text
        return str(answer.json()["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The runs of a DAG, the oldest first."""
        return list(self.get(f"/dags/{dag}/dagRuns?order_by=id")["dag_runs"])

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """The task instances of a DAG run."""
        return {one["task_id"]: one for one in self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]}

    def succeed(self, dag: str, run: str, *, seconds: float = 900) -> dict[str, dict[str, Any]]:
        """Wait for a DAG run, which must succeed; its task instances."""
        wait(lambda: self.get(f"/dags/{dag}/dagRuns/{run}")["state"] in _ENDED, f"{dag} {run}", seconds)
        tasks = self.tasks(dag, run)
        state = self.get(f"/dags/{dag}/dagRuns/{run}")["state"]
        assert state == "success", "\n".join(self._stories(dag, run, tasks.values()))
        return tasks

    def wait_for(self, dag: str, run: str, task: str, *states: str, seconds: float = 480) -> None:
        """Wait until a task is in one of these states."""
        wait(lambda: self.tasks(dag, run)[task]["state"] in states, f"{task} of {dag} {run} {states}", seconds)

    def xcom(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self.get(path)["value"]

    def log(self, dag: str, run: str, task: str, attempt: int) -> str:
        """What a try of a task said."""
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{attempt}?full_content=true"
        return self.ask("GET", path).text

    def _stories(self, dag: str, run: str, tasks: Iterable[dict[str, Any]]) -> Iterable[str]:
        for one in tasks:
            yield f"{one['task_id']}: {one['state']}, try {one['try_number']}"
            if one["state"] in {"failed", "up_for_retry"}:
                yield self.log(dag, run, one["task_id"], one["try_number"])[-3000:]


def wait(until: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Ask again and again, but not for ever."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(1)
