"""The hook: settings from a connection of type `headwater`, the lake graph, and applications under these settings."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from provenance_store.errors import JobError
from provenance_store.lake.layout import resolve
from provenance_store.model.dics import find_dic
from provenance_store.model.files import write_whole
from provenance_store.model.ids import check_run
from provenance_store.services.application import listen
from provenance_store.settings import Settings, as_environment, load_settings, read_settings

if TYPE_CHECKING:
    from provenance_store.graph.queries import LakeGraph

_SECONDS_BETWEEN_LOOKS = 0.5


class HeadwaterHook(BaseHook):
    """Headwater as a connection tells it; where there is none of that name, as the settings of the environment do."""

    conn_name_attr = "headwater_conn_id"
    default_conn_name = "headwater_default"
    conn_type = "headwater"
    hook_name = "Headwater"

    def __init__(self, headwater_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.headwater_conn_id = headwater_conn_id

    @cached_property
    def settings(self) -> Settings:
        """What the connection tells over what file and environment tell."""
        try:
            connection = self.get_connection(self.headwater_conn_id)
        except AirflowNotFoundException:
            if self.headwater_conn_id == self.default_conn_name:
                return load_settings()
            raise
        told: dict[str, Any] = {name: value for name, value in connection.extra_dejson.items() if value}
        config = told.pop("config", None)
        settings = read_settings(Path(config) if config else None, **told)
        if connection.password:
            neo4j = settings.neo4j.model_dump() | {"password": connection.password}
            settings = read_settings(Path(config) if config else None, **told, neo4j=neo4j)
        return settings

    def get_conn(self) -> "LakeGraph":
        """The lake graph, to be closed by the caller."""
        return self.lake_graph()

    def lake_graph(self, *, who: str | None = None) -> "LakeGraph":
        """The lake graph, asked in someone's name."""
        from provenance_store.graph.queries import LakeGraph

        return LakeGraph(self.settings, who=who)

    def reduced_folder(self, run: str) -> Path:
        """Where the reduced graph of a run is kept."""
        return self.settings.home.absolute() / "reduced" / check_run(run)

    def environment(self) -> dict[str, str]:
        """The environment of an application that is to have the same settings."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        return {**inherited, **as_environment(self.settings)}

    def run_dic(self, dic: str, arguments: Sequence[str], more: dict[str, str] | None = None) -> dict[str, Any]:
        """Run an instrumented DIC in a process of its own; what it tells of its run."""
        command = [sys.executable, "-m", find_dic(dic).value, *arguments, "--json"]
        return self.run_application(command, dic, more)

    def run_application(self, command: Sequence[str], what: str, more: dict[str, str] | None = None) -> dict[str, Any]:
        """Run one of our applications to its end; what it logs is in the task's log as it comes."""
        with _followed(self.log.info) as log:
            told = list(listen(command, what, self.log.info, {**self.environment(), **(more or {})}, kept=log))
        if not told:
            raise JobError(f"{what} ended without a result.")
        return told[-1]

    def run_folder(self, run: str) -> Path:
        """Where the tasks of a run leave word for each other."""
        return self.settings.home.absolute() / "runs" / check_run(run)

    def pin(self, run: str, inputs: Sequence[str]) -> list[str]:
        """The versions that a run reads, chosen once: a retry reads the same, whatever has come meanwhile."""
        path = self.run_folder(run) / "inputs.json"
        if not path.exists():
            versions = [resolve(self.settings.lake, one).reference for one in inputs]
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, msgspec.json.encode({"asked": list(inputs), "versions": versions}))
        pinned = msgspec.json.decode(path.read_bytes())
        return list(pinned["versions"])


@contextmanager
def _followed(say: Callable[[str], None]) -> Iterator[IO[bytes]]:
    """A log that is told line by line while it is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        over = threading.Event()
        with path.open("w+b") as log:
            telling = threading.Thread(target=_tell_lines, args=(path, over, say), daemon=True)
            telling.start()
            try:
                yield log
            finally:
                over.set()
                telling.join()


def _tell_lines(path: Path, over: threading.Event, say: Callable[[str], None]) -> None:
    with path.open(encoding="utf-8", errors="replace") as log:
        left = ""
        while True:
            is_last = over.wait(_SECONDS_BETWEEN_LOOKS)
            *lines, left = (left + log.read()).split("\n")
            for line in filter(str.strip, [*lines, left] if is_last else lines):
                say(line)
            if is_last:
                return
