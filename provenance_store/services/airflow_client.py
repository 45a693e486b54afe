"""A client of Airflow's REST API, as far as our own commands need one: log in, start a DAG, wait for it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from provenance_store.errors import JobError, ServiceError
from provenance_store.services.airflow import Airflow
from provenance_store.services.service import Say

_TIMEOUT_SECONDS = 30.0
_SECONDS_BETWEEN_LOOKS = 1.0


class AirflowClient:
    """What one user of the local Airflow can do."""

    def __init__(self, service: Airflow, user: str) -> None:
        self._service = service
        self._token: str | None = None
        told = self._ask("/auth/token", {"username": user, "password": service.passwords()[user]})
        self._token = str(told["access_token"])

    def trigger(self, dag: str, conf: Mapping[str, Any], *, seconds: float = 300.0) -> str:
        """Start a DAG, once Airflow has read its file; the id of the DAG run."""
        deadline = time.monotonic() + seconds
        while dag not in {one["dag_id"] for one in self._ask("/api/v2/dags?limit=1000")["dags"]}:
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"Airflow knows no DAG {dag} after {seconds:.0f} s: see {self._service.url} for errors in its file."
                )
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        told = self._ask(f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "conf": dict(conf)})
        return str(told["dag_run_id"])

    def wait(self, dag: str, run: str, say: Say) -> None:
        """Wait for a DAG run to succeed; JobError that names its tasks where it fails."""
        while (state := self._ask(f"/api/v2/dags/{dag}/dagRuns/{run}")["state"]) not in {"success", "failed"}:
            busy = [name for name, of in self._states(dag, run).items() if of in {"running", "deferred"}]
            say(f"{dag}: {', '.join(busy) or state}")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        if state == "failed":
            failed = [name for name, of in self._states(dag, run).items() if of == "failed"]
            raise JobError(
                f"{dag} failed in {', '.join(failed)}: its log is at {self._service.url}/dags/{dag}/runs/{run}."
            )

    def wait_for_next(self, dag: str, version: str, say: Say, *, seconds: float = 300.0) -> str:
        """Wait for the run of a DAG that the event of a new version starts, and for its success; its id."""
        deadline = time.monotonic() + seconds
        while (run := self._started_by(dag, version)) is None:
            if time.monotonic() > deadline:
                raise ServiceError(f"{version} started no run of {dag} within {seconds:.0f} s.")
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        self.wait(dag, run, say)
        return run

    def returned(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self._ask(path)["value"]

    def _started_by(self, dag: str, version: str) -> str | None:
        for one in self._ask(f"/api/v2/dags/{dag}/dagRuns?order_by=-id&limit=10")["dag_runs"]:
            if (
                one["start_date"] is None
            ):  # Airflow 3.3 answers questions about its events with an error until it starts
                continue
            run = str(one["dag_run_id"])
            events = self._ask(f"/api/v2/dags/{dag}/dagRuns/{run}/upstreamAssetEvents")["asset_events"]
            if version in [event["extra"].get("version") for event in events]:
                return run
        return None

    def _states(self, dag: str, run: str) -> dict[str, str | None]:
        told = self._ask(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in told}

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._service.url}{path}", data, headers)  # noqa: S310 - our own address
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - our own address
                return json.load(answer)
        except urllib.error.HTTPError as error:
            told = error.read().decode(errors="replace")
            raise ServiceError(f"Airflow answered {error.code} to {path}: {told[:500]}") from None
        except OSError as error:
            raise ServiceError(
                f"Airflow at {self._service.url} does not answer ({error}): `headwater status` shows what runs."
            ) from None
