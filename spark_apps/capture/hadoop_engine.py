"""The two Hadoops a job runs on: LocalJobRunner in one JVM on pyspark's own jars, or YARN with HDFS.

An engine says how the client is started, where it reads and writes, and which attempts it committed.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from provenance_store.errors import JobError, SettingsError
from provenance_store.lake.layout import Version
from provenance_store.services import hadoop, jvm
from provenance_store.settings import Settings

_HDFS_STAGING = "/headwater/executions"
_HISTORY_SECONDS = 120.0
_BLOCK_BYTES = 128 << 20
_SHIPPED_JOB_FILE = "headwater-job.json"
_LOGGING = Path(__file__).resolve().with_name("hadoop-log4j.properties")
_ATTEMPT = re.compile(r"\battempt_\w+")
_GLOB = re.compile(r"[,{}\[\]*?\\]")


class Committed(NamedTuple):
    """Tells committed attempts from others, and names all of them where the engine can."""

    contains: Callable[[str], bool]
    attempts: frozenset[str] = frozenset()


class Engine(ABC):
    """One Hadoop."""

    def __init__(self, settings: Settings, folder: Path, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.folder = folder
        self._say = say
        jvm.fetch(settings, "hadoop", say)

    @abstractmethod
    def classpath(self) -> str:
        """The client's class path."""

    @abstractmethod
    def options(self) -> dict[str, str]:
        """Configuration of the job; never a secret, as streaming puts all of it into every worker's environment."""

    @abstractmethod
    def ship(self, job_file: Path) -> tuple[list[str], str]:
        """How workers get the private job file: the client's options, and the path as a worker sees it."""

    @abstractmethod
    def read_from(self, version: Version) -> str:
        """The path under which Hadoop reads a version."""

    @abstractmethod
    def write_to(self, unfinished: Path) -> str:
        """The path to which Hadoop writes what must come to be in a local folder that is not there yet."""

    @abstractmethod
    def bring_home(self, unfinished: Path) -> None:
        """Bring what was written into that folder."""

    @abstractmethod
    def committed(self, job: str) -> Committed:
        """Which attempts of this job's tasks were committed."""

    @abstractmethod
    def clean(self) -> None:
        """Take away what an execution left, however it ended."""

    def java(self, main_class: str, *arguments: str) -> list[str]:
        """A Java program on this Hadoop."""
        return [
            jvm.java(),
            f"-Dlog4j.configuration={_LOGGING.as_uri()}",
            "-Dfile.encoding=UTF-8",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-cp",
            self.classpath(),
            main_class,
            *arguments,
        ]


class LocalEngine(Engine):
    """LocalJobRunner: real MapReduce in one JVM, on local files. It never tries a task twice."""

    def classpath(self) -> str:
        """Pyspark carries Hadoop's client; only streaming is added."""
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise SettingsError("LocalJobRunner runs on pyspark's jars, and pyspark is not installed.")
        return f"{Path(spec.origin).parent / 'jars' / '*'}{os.pathsep}{hadoop.streaming_jar(self.settings)}"

    def options(self) -> dict[str, str]:
        """As many tasks at once as there are cores, and scratch files in the run's own folder.

        Local files are cut as HDFS cuts them: into a quarter as many tasks as Hadoop makes of them otherwise.
        """
        cores = str(os.cpu_count() or 1)
        return {
            "mapreduce.framework.name": "local",
            "fs.defaultFS": "file:///",
            "fs.local.block.size": str(_BLOCK_BYTES),
            "hadoop.tmp.dir": str(self.folder / "tmp"),
            "mapreduce.local.map.tasks.maximum": cores,
            "mapreduce.local.reduce.tasks.maximum": cores,
        }

    def ship(self, job_file: Path) -> tuple[list[str], str]:
        """Workers run here and read it where it is."""
        return [], str(job_file)

    def read_from(self, version: Version) -> str:
        """Where it is."""
        return _check_path(version.path)

    def write_to(self, unfinished: Path) -> str:
        """Right there."""
        return _check_path(unfinished)

    def bring_home(self, unfinished: Path) -> None:
        """Take Hadoop's checksums away: they would turn wrong when a purge rewrites a file."""
        for checksum in unfinished.glob(".*.crc"):
            checksum.unlink()

    def clean(self) -> None:
        """Scratch files are in the run's own folder."""
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)

    def committed(self, job: str) -> Committed:
        """All attempts of a job that succeeded: there is one of each task."""
        prefix = job.replace("job_", "attempt_", 1) + "_"
        return Committed(lambda attempt: attempt.startswith(prefix))


class YarnEngine(Engine):
    """A cluster: inputs are copied into HDFS, the output is copied back, the history server is asked."""

    def __init__(self, settings: Settings, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__(settings, folder, say)
        self._staging = f"{_HDFS_STAGING}/{folder.name}-{os.urandom(4).hex()}"

    @property
    def conf_dir(self) -> Path:
        """The client's configuration folder: the configured one, or the local cluster's."""
        folder = self.settings.hadoop.conf_dir or hadoop.client_conf_dir(self.settings)
        if not folder.is_dir():
            raise SettingsError(
                f"There is no Hadoop client configuration in {folder}: run `headwater up hadoop`, "
                "or set HEADWATER_HADOOP__CONF_DIR."
            )
        return folder

    def classpath(self) -> str:
        """The cluster's configuration goes first."""
        return f"{self.conf_dir}{os.pathsep}{jvm.classpath(self.settings, 'hadoop')}"

    def options(self) -> dict[str, str]:
        """The cluster's own configuration says the rest."""
        utf8 = "LC_ALL=C.UTF-8"  # else a file's name that is not ASCII reaches workers garbled
        return {"mapreduce.framework.name": "yarn", "mapreduce.map.env": utf8, "mapreduce.reduce.env": utf8}

    def ship(self, job_file: Path) -> tuple[list[str], str]:
        """Through the job's staging folder, which only the user can read, into each worker's folder."""
        return ["-files", f"{job_file.as_uri()}#{_SHIPPED_JOB_FILE}"], _SHIPPED_JOB_FILE

    def read_from(self, version: Version) -> str:
        """A copy in HDFS, for this execution alone: one that stayed would go stale, and outlive a purge."""
        self._shell("-mkdir", "-p", f"{self._staging}/{version.dataset}")
        self._shell("-put", _check_path(version.path), f"{self._staging}/{version.dataset}/")
        return f"{self._staging}/{version.reference}"

    def write_to(self, unfinished: Path) -> str:
        """Beside the copies."""
        return f"{self._staging}/.output"

    def bring_home(self, unfinished: Path) -> None:
        """Copy it from HDFS."""
        self._shell("-get", self.write_to(unfinished), str(unfinished))

    def clean(self) -> None:
        """Take all that was copied or written away."""
        if self._shell("-rm", "-r", "-f", "-skipTrash", self._staging, check=False) != 0:
            self._say(f"{self._staging} in HDFS could not be removed: remove it by hand, it holds copies of the input")

    def committed(self, job: str) -> Committed:
        """The successful attempt of each task, which Hadoop's own client asks of the history server.

        Not by REST: that needs its own authentication on a secured cluster, and the servers of a small cluster in one
        process hide each other's REST services.
        """
        attempts = [attempt for kind in ("MAP", "REDUCE") for attempt in self._successful(job, kind)]
        return Committed(frozenset(attempts).__contains__, frozenset(attempts))

    def _successful(self, job: str, kind: str) -> list[str]:
        deadline = time.monotonic() + _HISTORY_SECONDS
        while True:
            done = self._call("org.apache.hadoop.mapred.JobClient", "-list-attempt-ids", job, kind, "completed")
            if done.returncode == 0:
                return _ATTEMPT.findall(done.stdout)
            if time.monotonic() > deadline:
                raise JobError(
                    f"The job history server does not tell the tasks of {job}, so nobody knows which attempts "
                    f"were committed. Check it, then execute the run again. It said:\n{done.stderr.strip()[-2000:]}"
                )
            # It learns of a job a little after the job has ended.
            time.sleep(1)

    def _shell(self, *arguments: str, check: bool = True) -> int:
        done = self._call("org.apache.hadoop.fs.FsShell", *arguments)
        if check and done.returncode != 0:
            raise JobError(f"HDFS refused `{' '.join(arguments)}`:\n{done.stderr.strip()[-2000:]}")
        return done.returncode

    def _call(self, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = self.java(main_class, *arguments)
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "yarn": YarnEngine}


def quote_command(words: Sequence[str]) -> str:
    """A command as streaming splits it: at spaces outside quotes."""
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def _check_path(path: Path) -> str:
    text = os.path.abspath(path)  # noqa: PTH100 - Hadoop drops `..` from paths, and so must the ids' beginning
    if _GLOB.search(text):
        raise SettingsError(f"Hadoop takes some characters of {text} for a pattern: move the lake to a plainer path.")
    return text
