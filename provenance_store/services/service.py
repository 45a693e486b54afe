"""The port behind which every local service stands.

To add one: subclass `Service`, give it a `name`, the ports it needs and how it is launched and asked whether it
answers, and list it in `registry.py`. Locks, pid files, logs, waiting and stopping are `lifecycle.py`'s work.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from provenance_store.settings import LOOPBACK, Settings

Say = Callable[[str], None]


class State(StrEnum):
    """What a service is doing."""

    RUNNING = "running"
    STOPPED = "stopped"
    STALE = "stale"
    NOT_ANSWERING = "not answering"


@dataclass(frozen=True)
class Status:
    """One row of `headwater status`."""

    name: str
    state: State
    pid: int | None
    address: str
    data: str
    since: str | None


@dataclass(frozen=True)
class Identity:
    """A process for good: its pid alone may be given to another one, with its start and the boot it cannot."""

    pid: int
    started: int
    boot: str


@dataclass(frozen=True)
class Launch:
    """How a service's process is started. `stdin` is handed over by a pipe: a secret there is seen by no one else."""

    argv: Sequence[str]
    cwd: Path
    stdin: str | None = field(default=None, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)


class Service(ABC):
    """One local service; all that it keeps lies in `home/services/<name>`."""

    name: ClassVar[str]
    # Hadoop's clean shutdown is the slowest; after this the process group is killed.
    stop_timeout_seconds: ClassVar[float] = 30.0

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.home.absolute() / "services" / self.name

    @property
    def data(self) -> Path:
        """What must outlive the process."""
        return self.folder / "data"

    @property
    def logs(self) -> Path:
        """What the process tells."""
        return self.folder / "log"

    @property
    def log_file(self) -> Path:
        """The process's standard output and error."""
        return self.logs / "output.log"

    @property
    def pid_file(self) -> Path:
        """Who the running process is."""
        return self.folder / "pid"

    @property
    def lock_file(self) -> Path:
        """Held while the service is started or stopped; the one file that `--purge-data` leaves."""
        return self.folder / "lock"

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{LOOPBACK}:{next(iter(self.ports.values()))}"

    @property
    def secrets(self) -> Sequence[Path]:
        """Generated secrets that are worth nothing without the data."""
        return ()

    @property
    def configured_elsewhere(self) -> str | None:
        """The setting that points clients at another server, so that plain `headwater up` leaves this one out."""
        return None

    @property
    def hint(self) -> str | None:
        """What a person should know to begin, where an address is not enough."""
        return None

    @property
    @abstractmethod
    def ports(self) -> Mapping[str, int]:
        """The name of each port's setting in `[services]`, and the port; the one that clients use comes first."""

    @abstractmethod
    def prepare(self, say: Say) -> None:
        """Whatever must be there before the process starts: jars, configuration, a formatted store."""

    @abstractmethod
    def launch(self) -> Launch:
        """The process to start."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether a real client is served, found out within seconds and without an exception."""

    def left_behind(self) -> Sequence[Identity]:
        """What the process started outside its own process group; it is ended with it."""
        return ()
