"""Captures one job several times on a small cluster, undisturbed and disturbed, and prints what each came to.

Run as a script: a process has one JVM, and this one's executors are killed. The cluster is a standalone one with its
two workers at two addresses, because Spark gives no speculative attempt to the host of the first one.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provenance_store.lake import layout
from provenance_store.reduction.exact import reduce_messages
from provenance_store.services import jvm
from provenance_store.settings import LOOPBACK, Settings, SparkSettings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.jar import capture_jars, spark_jars
from spark_apps.capture.rdd import TrackedRDD
from spark_apps.capture.spark_run import SparkRun, run_spark
from spark_apps.session import open_session

DAWDLE_SECONDS = 180
Disturbance = Callable[[], None]
CONF = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "8s",  # a task that is only slow, on a busy machine, is left alone
    "spark.rdd.cache.visibilityTracking.enabled": "true",
    "spark.task.maxFailures": "8",
}


class Once:
    """Disturbs the first task that comes by, when it has handed all on; never again in this scenario.

    What the task told before is sent and confirmed by then, so it is for the manifest to leave it out.
    """

    def __init__(self, marker: Path, disturb: Disturbance) -> None:
        self.marker = marker
        self.disturb = disturb

    def __call__(self, values: Iterator[Any]) -> Iterator[Any]:
        """A step of a narrow chain that hands every value on."""
        yield from values
        if self._is_first():
            self.disturb()

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def fail() -> None:
    raise RuntimeError("this task fails once, on purpose")


def kill_executor() -> None:
    # A Python worker is a child of a daemon, which is a child of the executor's JVM.
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    executor = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
    os.kill(executor, signal.SIGKILL)
    time.sleep(60)


def dawdle() -> None:
    time.sleep(DAWDLE_SECONDS)  # until the speculative attempt has won and this one is killed


def read(line: str) -> tuple[int, int]:
    key, _, value = line.partition(" ")
    return int(key), int(value)


class Job:
    """Two reads, groups, a partition-wise function, a join, a cogroup; disturbed at the places that are named."""

    def __init__(self, folder: Path, scenario: str, places: dict[str, Disturbance]) -> None:
        self.folder = folder
        self.scenario = scenario
        self.places = places

    def __call__(self, run: SparkRun) -> None:
        pairs = self._at("read", run.text("left").map(read))
        parts = self._at("partition", pairs.mapPartitions(lambda found: [(n % 7, n) for n, _ in enumerate(found)]))
        kept = parts.cache()
        if self.scenario == "cache lost":
            kept.untracked.count()
            self._lose_an_executor(run)
        cached = self._at("cached", kept)
        sums = self._at("group", cached.union(pairs).reduceByKey(lambda a, b: a + b).mapValues(lambda v: v % 1000))
        other = run.text("right").map(read).distinct()
        made = sums.join(other).cogroup(kept).mapValues(lambda two: (sorted(two[0])[:3], len(two[1])))
        lines = self._at("write", made.map(str)).union(pairs.filter(lambda p: p[1] % 10 == 0).map(str))
        lines.sortBy(lambda line: line, numPartitions=3).saveAsTextFile("out")

    def _at(self, place: str, rdd: TrackedRDD) -> TrackedRDD:
        if place not in self.places:
            return rdd
        return rdd._then(Once(self._marker(place), self.places[place]))

    def _marker(self, place: str) -> Path:
        return self.folder / f"{self.scenario}-{place}".replace(" ", "-")

    def _lose_an_executor(self, run: SparkRun) -> None:
        once = Once(self._marker("executor"), kill_executor)
        run.spark.sparkContext.parallelize(range(4), 2).mapPartitions(once).count()


SCENARIOS: dict[str, dict[str, Disturbance]] = {
    "undisturbed": {},
    "tasks fail": {"read": fail, "partition": fail, "cached": fail, "group": fail, "write": fail},
    "executor killed": {"group": kill_executor},
    "speculation": {"read": dawdle},
    "cache lost": {},
}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each; its address."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = str(probe.getsockname()[1])
    address = f"spark://{LOOPBACK}:{port}"
    master = ["master.Master", "--host", LOOPBACK, "--port", port, "--webui-port", "0"]
    resources = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
    workers = [
        ["worker.Worker", "--host", host, *resources, "--work-dir", str(folder / f"work-{host}"), address]
        for host in (LOOPBACK, "127.0.0.2")
    ]
    jars = spark_jars()
    java = [str(jvm.java_home() / "bin" / "java"), "-Xmx256m", "-cp", str(jars / "*")]
    started = []
    try:
        for name, *arguments in (master, *workers):
            with (folder / f"{name}-{len(started)}.log").open("wb") as log:
                command = [*java, f"org.apache.spark.deploy.{name}", *arguments]
                environment = {**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def main(folder: Path) -> None:
    """Print each scenario's graph and account."""
    with cluster(folder) as master:
        run_scenarios(folder, master)


def run_scenarios(folder: Path, master: str) -> None:
    settings = Settings(
        home=folder / "home",
        lake=folder / "lake",
        recordings=folder / "recordings",
        spark=SparkSettings(master=master, driver_memory="1g", conf=CONF),
    )
    for dataset, count in (("left", 400), ("right", 30)):
        with layout.new_version(layout.version_of(settings.lake, dataset, "v1"), {}) as made:
            for part in range(2):
                rows = "".join(f"{n % 11} {n * 7 % 101}\n" for n in range(part, count, 2))
                (made / f"part-{part}.txt").write_text(rows)
    session = open_session(settings, "disturbed", capture_jars(settings, lambda _: None))
    for number, (name, places) in enumerate(SCENARIOS.items()):
        job = Job(folder, name, places)
        started = time.monotonic()
        run_spark(f"d{number}", job, settings=settings, session=session, run="r1", outputs=["out"])
        reduced = reduce_messages(RecordingSource(settings.recordings / f"headwater.d{number}"))[0]
        told = {
            "scenario": name,
            "verdict": reduced.account.verdict,
            "discarded": reduced.account.discarded,
            "graph": reduced.graph.rows(),
            "disturbed": len(list(folder.glob(f"{name.replace(' ', '-')}-*"))),
            "seconds": time.monotonic() - started,
        }
        print(json.dumps(told), flush=True)
        layout.resolve(settings.lake, "out/r1").path.rename(folder / f"out-{number}")
    session.stop()


if __name__ == "__main__":
    # By its name, so that executors import the classes instead of being sent copies of them.
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    import disturbed

    disturbed.main(Path(sys.argv[1]))
