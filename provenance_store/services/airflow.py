"""Airflow: api-server, scheduler, DAG processor and triggerer as one service, reachable from this machine only.

It is started and asked, never imported: only plugins and DAGs know Airflow. All that it is told stands in its
`airflow.cfg`, which its owner alone may read; `AIRFLOW__…` variables of whoever starts it go before.
"""

import base64
import configparser
import io
import json
import os
import secrets
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from provenance_store.errors import ServiceError
from provenance_store.model.files import write_whole
from provenance_store.services.ports import accepts
from provenance_store.services.process import working_in
from provenance_store.services.service import Identity, Launch, Say, Service
from provenance_store.settings import CHECKOUT, LOOPBACK, as_environment, read_or_make_secret

# Who may log in, with Airflow's own roles. The officer approves purges, which nobody does for a purge of their own.
USERS = {"admin": "admin", "engineer": "op", "officer": "user", "viewer": "viewer"}
_PARTS = ("api-server", "scheduler --skip-serve-logs", "dag-processor", "triggerer --skip-serve-logs")
_HEALTHY = ("metadatabase", "scheduler", "dag_processor", "triggerer")
_MIGRATE_TIMEOUT_SECONDS = 300.0
_ASK_TIMEOUT_SECONDS = 5.0


class Airflow(Service):
    """The local Airflow, started on request only: SQLite, and tasks as processes of this machine."""

    name = "airflow"

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of pages and API."""
        return {"airflow_port": self.settings.services.airflow_port}

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return f"http://{self.address}"

    @property
    def hint(self) -> str:
        """Where a person begins."""
        return f"{self.url}: log in as {', '.join(USERS)}; their passwords are in {self.passwords_file}"

    @property
    def passwords_file(self) -> Path:
        """The generated passwords, by user, as Airflow's simple auth manager reads them."""
        return self._secret_file("passwords.json")

    @property
    def secrets(self) -> Sequence[Path]:
        """Passwords, and the keys of tokens, sessions and connections."""
        return (self.passwords_file, *map(self._secret_file, ("jwt", "session", "fernet")))

    def passwords(self) -> dict[str, str]:
        """The password of each user, made at the first start."""
        made = read_or_make_secret(
            self.passwords_file, lambda: json.dumps({user: secrets.token_urlsafe(18) for user in USERS})
        )
        known: dict[str, str] = json.loads(made)
        return known

    def configuration(self) -> dict[str, dict[str, str | int]]:
        """What Airflow is told, by section."""
        chosen = self.settings.services
        return {
            "core": {
                "dags_folder": str(chosen.airflow_dags.absolute()),
                "plugins_folder": str(CHECKOUT / "plugins"),
                "executor": "LocalExecutor",
                "parallelism": chosen.airflow_parallelism,
                "load_examples": "False",
                "execution_api_server_url": f"{self.url}/execution/",
                "fernet_key": self._secret("fernet", lambda: base64.urlsafe_b64encode(os.urandom(32)).decode()),
                "simple_auth_manager_users": ",".join(f"{user}:{role}" for user, role in USERS.items()),
                "simple_auth_manager_passwords_file": str(self.passwords_file),
                "simple_auth_manager_all_admins": "False",
                "dags_are_paused_at_creation": "False",
            },
            "database": {"sql_alchemy_conn": f"sqlite:///{self.data}/airflow.db"},
            "logging": {"base_log_folder": str(self.logs / "tasks")},
            "api": {
                "host": LOOPBACK,
                "port": chosen.airflow_port,
                "base_url": self.url,
                "workers": 1,
                "secret_key": self._secret("session"),
            },
            "api_auth": {"jwt_secret": self._secret("jwt")},
            # A DAG file that was changed is seen within seconds.
            "dag_processor": {"refresh_interval": 15, "min_file_process_interval": 15, "parsing_processes": 1},
            "scheduler": {"enable_health_check": "False"},
            "usage_data_collection": {"enabled": "False"},
        }

    def prepare(self, say: Say) -> None:
        """Make secrets, write the configuration, and bring the database to this release."""
        self.passwords()
        self._work.mkdir(exist_ok=True)
        told = configparser.RawConfigParser()
        # Airflow reads its file with interpolation, in which a percent sign is written twice.
        told.read_dict(
            {
                section: {name: str(value).replace("%", "%%") for name, value in options.items()}
                for section, options in self.configuration().items()
            }
        )
        text = io.StringIO()
        told.write(text)
        write_whole(self.data / "airflow.cfg", text.getvalue().encode(), mode=0o600)
        stamp = self.data / "migrated"
        release = version("apache-airflow")
        if not stamp.exists() or stamp.read_text() != release:
            say(f"airflow: preparing its database for release {release}")
            self._migrate()
            write_whole(stamp, release.encode())

    def launch(self) -> Launch:
        """All four, by a process that ends them together."""
        python = shlex.quote(sys.executable)
        argv = [sys.executable, "-m", "provenance_store.services.together"]
        first, *others = [f"{python} -m airflow {part}" for part in _PARTS]
        # Tasks that are started before the api-server answers would fail.
        argv += [first, f"@{self.settings.services.airflow_port}", *others]
        return Launch(argv=argv, cwd=self._work, environment=self._environment())

    def answers(self) -> bool:
        """Whether every part says that it is well."""
        if not accepts(self.settings.services.airflow_port):
            return False
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/monitor/health", timeout=_ASK_TIMEOUT_SECONDS) as answer:  # noqa: S310 - our own address
                health = json.load(answer)
            return all(health[part]["status"] == "healthy" for part in _HEALTHY)
        except (OSError, ValueError, KeyError, TypeError):  # something else listens there, or it is coming up
            return False

    def left_behind(self) -> Sequence[Identity]:
        """Tasks run in process groups of their own, and what they start in sessions; all work in our folder."""
        return [one for one in working_in(self._work) if one.pid != os.getpid()]

    @property
    def _work(self) -> Path:
        return self.folder / "work"

    def _environment(self) -> dict[str, str]:
        # Its tasks are ours: they meet the lake, the broker and the graph that whoever starts it would meet.
        return {**as_environment(self.settings), "AIRFLOW_HOME": str(self.data)}

    def _migrate(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **self._environment()},
            timeout=_MIGRATE_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"Airflow could not prepare its database in {self.data}. `headwater down airflow --purge-data` removes "
                f"what is there. It said:\n{done.stdout}{done.stderr}"
            )

    def _secret_file(self, name: str) -> Path:
        return self.settings.home.absolute() / "secrets" / f"airflow-{name}"

    def _secret(self, name: str, make: Callable[[], str] = lambda: secrets.token_urlsafe(48)) -> str:
        return read_or_make_secret(self._secret_file(name), make)
